"""The memory of processes, as the kernel counts it."""

import os

import pytest

from wallaroo_runtime.monitor import resource
from wallaroo_runtime.monitor.resource import ProcessFamily, resident_bytes
from wallaroo_runtime.system import process


def test_memory_of_this_process() -> None:
    assert 10**6 < resident_bytes(os.getpid()) <= ProcessFamily().resident_bytes(os.getpid())
    assert resident_bytes(2**30) == 0


def test_processes_that_this_user_may_not_read_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def parent_of(pid: int) -> int | None:
        if pid == 1:
            raise PermissionError
        return process.parent_of(pid)

    monkeypatch.setattr(resource, "parent_of", parent_of)
    assert ProcessFamily().resident_bytes(os.getpid()) > 10**6
