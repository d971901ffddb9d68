"""Locks, pauses and processes, and the guess of what was meant."""

import errno
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.diagnostic.diagnostic import closest
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.system.backoff import Backoff
from wallaroo_runtime.system.lock import SHARE, TRY, lock_directory, locked, take_lock
from wallaroo_runtime.system.process import parent_of, process_start_time

SECONDS = st.floats(0.001, 10)


@given(SECONDS, SECONDS, st.lists(st.booleans(), max_size=100))
def test_pauses_double_until_the_last_and_begin_again(first: float, more: float, succeeds: list[bool]) -> None:
    backoff, expected = Backoff(first, first + more), first
    for success in succeeds:
        if success:
            backoff.count, expected = 0, first
        assert backoff.next() == pytest.approx(expected)
        expected = min(2 * expected, first + more)
    assert (backoff.after(0), backoff.after(1_000_000)) == (0.0, first + more)


@pytest.mark.parametrize("is_file", [True, False])
def test_one_process_has_a_lock(tmp_path: Path, is_file: bool) -> None:
    path = tmp_path / "lock" if is_file else tmp_path
    with locked(path), pytest.raises(BlockingIOError):
        take_lock(path, TRY)
    with locked(path, SHARE):
        os.close(take_lock(path, SHARE))
        with pytest.raises(BlockingIOError):
            take_lock(path, TRY)
    os.close(take_lock(path, TRY))


def test_a_locked_directory_names_its_holder(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("a longer text of an earlier one\n")
    lock = lock_directory(tmp_path)
    with pytest.raises(RunError) as caught:
        lock_directory(tmp_path)
    assert (caught.value.diagnostics[0].code, f"process {os.getpid()})" in str(caught.value)) == ("R610", True)
    os.close(lock)
    os.close(lock_directory(tmp_path))


def test_a_full_disk_does_not_keep_a_directory_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(OSError, match="no room"):
        patch.setattr(os, "pwrite", Mock(side_effect=OSError(errno.ENOSPC, "no room")))
        lock_directory(tmp_path)
    os.close(lock_directory(tmp_path))


def test_a_link_is_not_locked(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic"):
        take_lock(tmp_path / "lock")
    assert not (tmp_path / "other").exists()


def test_a_process_and_its_parent() -> None:
    assert parent_of(os.getpid()) == os.getppid()
    assert (parent_of(0), process_start_time(0)) == (None, None)


@given(st.text(max_size=8), st.sets(st.text(max_size=8), max_size=5))
def test_a_guess_is_a_known_name_and_the_same_one_where_there_is_one(name: str, known: set[str]) -> None:
    guess = closest(name, known)
    assert guess in known | {""}
    assert name not in known or guess == name
