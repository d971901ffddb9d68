"""Lets a test fail that starts a process and has no mark that says so: `make test-unit` must need none."""

import sys
from collections.abc import Iterator

import pytest

MARKS = frozenset({"slow", "jvm", "long", "kafka", "connector", "cluster", "javascript"})
EVENTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"})


class ProcessGuard:
    """A plugin of pytest; watches the tests of this process from its first one on."""

    def __init__(self) -> None:
        self._watches, self._started = False, list[str]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        # git reports which files there are, in milliseconds.
        if event in EVENTS and self._watches and arguments[:1] != ("git",):
            self._started.append(f"{event} {arguments[:2]}"[:200])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Watch the test's fixtures."""
        return (yield from self._watched(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Watch the test."""
        return (yield from self._watched(item))

    def _watched(self, item: pytest.Item) -> Iterator[None]:
        self._watches = not MARKS.intersection(mark.name for mark in item.iter_markers())
        self._started.clear()
        try:
            result = yield
        finally:
            self._watches = False
        if self._started:
            pytest.fail(f'{item.nodeid} starts a process: {self._started[0]}; give it the mark "slow"', pytrace=False)
        return result
