"""Where a worker's log is on the executor that starts it."""

from dataclasses import replace
from pathlib import Path

import pytest

from wallaroo_runtime.worker.executor import LOGS_OF_CLUSTER, located
from wallaroo_runtime.worker.spec import WorkerSpec


def test_a_spec_without_a_log_directory_stays_as_it_is(plain_spec: WorkerSpec) -> None:
    """Its logs are in the worker's private directory, not in the one that a test or a program happens to run in."""
    assert located(plain_spec, Path("/files")) == plain_spec


def test_logs_of_a_cluster_are_where_its_executors_run(
    plain_spec: WorkerSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONTAINER_ID", raising=False)
    monkeypatch.chdir(tmp_path)
    assert located(replace(plain_spec, log_directory=LOGS_OF_CLUSTER), Path("/files")).log_directory == str(tmp_path)


def test_yarn_names_its_directories_for_logs(plain_spec: WorkerSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTAINER_ID", "container_1")
    monkeypatch.setenv("LOG_DIRS", "/logs/a,/logs/b")
    assert located(replace(plain_spec, log_directory=LOGS_OF_CLUSTER), Path("/files")).log_directory == "/logs/a"
