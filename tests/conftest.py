"""What test files share: Go programs, a cluster, the option that rewrites golden files, and which files come first."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from standalone import Cluster, Deployment

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


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, remark: Callable[[str], None]) -> Iterator["Cluster"]:
    """Start the master of a cluster of hosts; workers come when they are wanted."""
    from host import Scene
    from standalone import Cluster

    with Scene(tmp_path_factory.mktemp("hosts")) as scene:
        remark(f"the cluster's hosts: {scene}")
        cluster = Cluster(scene)
        yield cluster
        cluster.close()


@pytest.fixture
def deployment(cluster: "Cluster") -> Iterator["Deployment"]:
    """Give two Spark workers, a gateway, an egress, and machines for drivers."""
    from standalone import Deployment

    cluster.alive(2)
    with Deployment(cluster) as deployment:
        yield deployment


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return what packs a program, once."""
    from run import wallaroo

    folder = tmp_path_factory.mktemp("archives")

    def packed(name: str, program: Path, *more: str, inputs: str = "127.0.0.1:7010") -> Path:
        file = folder / f"{name}.tar.gz"
        if not file.exists():
            addresses = (*(("--in", inputs) if inputs else ()), "--out", "127.0.0.1:7002")
            done = wallaroo("pack", program, "-o", file, *addresses, *more, seconds=300)
            assert done.returncode == 0, done.stderr
        return file

    return packed
