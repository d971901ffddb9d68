"""Goka's own examples, integration tests and system tests, with our import paths and no other change."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.goka import GOKA_MODULE, OURS
from support.kafka import Broker
from support.run import WALLAROO

FOLDERS = ("examples", "integrationtest", "systemtest")
# What a program of Goka has besides Goka; the versions are those of its own module.
MORE = ("github.com/stretchr/testify v1.11.1", "golang.org/x/sync v0.19.0")
# Those that say nothing of consumer groups, storages, or how fast a processor starts.
SYSTEM_TESTS = "TestMultiTopics|TestCallbackFail|TestProcessorVisit/visit-success"
PATIENCE = ("30 * time.Second", "300 * time.Second")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy them out of Goka's module."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "github.com/lovoo/goka"]
    goka = subprocess.run(command, cwd=GOKA_MODULE, capture_output=True, text=True, check=True).stdout.strip()
    root = tmp_path_factory.mktemp("programs")
    for folder in FOLDERS:
        shutil.copytree(Path(goka) / folder, root / folder, copy_function=shutil.copyfile)
    for source in root.rglob("*.go"):
        source.parent.chmod(0o700)
        text = source.read_text(encoding="utf-8").replace('"github.com/lovoo/goka/examples', '"programs/examples')
        text = re.sub(r'"github\.com/lovoo/goka(["/])', rf'"{OURS}\1', text)
        source.write_text(text.replace(*PATIENCE), encoding="utf-8")
    own = (GOKA_MODULE / "go.mod").read_text(encoding="utf-8")
    own = re.sub(r"(?m)^module .*$", "module programs", own).replace("=> ../", f"=> {GOKA_MODULE.parent}")
    more = "".join(f"require {each}\n" for each in (*MORE, f"{OURS} v0.0.0"))
    (root / "go.mod").write_text(f"{own}{more}replace {OURS} => {GOKA_MODULE}\n", encoding="utf-8")
    shutil.copyfile(GOKA_MODULE / "go.sum", root / "go.sum")
    return root


def go(programs: Path, *command: str, **environment: str) -> str:
    """Run the command go there; returns what it said."""
    own = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off", **environment}
    done = subprocess.run(
        ["go", *command], cwd=programs, env=own, capture_output=True, text=True, timeout=1500, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout


@pytest.mark.long
def test_all_of_them_compile_and_those_without_kafka_pass(programs: Path) -> None:
    said = go(programs, "test", "-count=1", "./...")
    for package in ("examples/4-tests", "integrationtest", "systemtest"):
        assert f"ok  \tprograms/{package}" in said, said


@pytest.mark.long
@pytest.mark.kafka
def test_system_tests(programs: Path, broker: Broker, tmp_path: Path) -> None:
    where = {"GOKA_SYSTEMTEST": "y", "GOKA_SYSTEMTEST_BROKERS": broker.address, "XDG_STATE_HOME": str(tmp_path)}
    said = go(programs, "test", "-count=1", "-v", "-run", SYSTEM_TESTS, "./systemtest", WALLAROO=str(WALLAROO), **where)
    assert said.count("--- PASS: ") == 4, said
