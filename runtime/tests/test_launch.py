"""The variables that a worker is started with."""

import subprocess
import sys
from pathlib import Path

import pytest

from wallaroo_runtime.worker.launch import environment
from wallaroo_runtime.worker.spec import WorkerSpec


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["", "0", "77", "random"])
def test_hash_of_a_text_is_the_same_in_every_worker(seed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs for Wallaroo make keys with hash(), e.g. `hash(data.email) % 10`."""
    monkeypatch.setenv("PYTHONHASHSEED", seed)
    variables = environment(WorkerSpec("a", "main", ("{python}",), str(tmp_path)), tmp_path)

    def hash_with(chosen: dict[str, str]) -> bytes:
        command = [sys.executable, "-c", "print(hash('a'))"]
        return subprocess.run(command, env=chosen, capture_output=True, check=True, timeout=300).stdout

    assert hash_with(variables) == hash_with({"PYTHONHASHSEED": "0"})
