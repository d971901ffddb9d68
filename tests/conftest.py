"""What test files share: built Go programs, the option that rewrites golden files, and which files come first."""

from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
REMARKS = pytest.StashKey[list[str]]()  # what the summary tells of how tests were run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="write the golden files anew instead of comparing")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the files that take longest come first: at the end two processes then share what is short."""
    ranks: dict[Path, int] = {}
    for item in items:
        names = {marker.name for marker in item.iter_markers()}
        rank = 0 if "jvm" in names else 1 if "slow" in names else 2
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    items.sort(key=lambda item: ranks[item.path])


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REMARKS] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for remark in config.stash[REMARKS]:
        terminalreporter.write_line(remark)


@pytest.fixture(scope="session")
def remark(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Return what adds a line to the summary."""
    return request.config.stash[REMARKS].append


@pytest.fixture(scope="session")
def rewrites_golden(request: pytest.FixtureRequest) -> bool:
    """Say whether golden files are to be written."""
    return bool(request.config.getoption("--golden"))


@pytest.fixture(scope="session")
def go_conformance() -> Path:
    """Build the Go conformance application."""
    from wallaroo_runtime.worker.build import build

    return build(HERE / "conformance")
