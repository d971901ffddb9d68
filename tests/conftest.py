"""What test files share: Go programs, a cluster, an option; and which process of pytest runs what, and what first."""

import os
import re
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from process_guard import ProcessGuard

if TYPE_CHECKING:
    from support.kafka import Broker
    from support.standalone import Cluster, Deployment

HERE = Path(__file__).resolve().parent
# How many units of long tests are drawn for the commit; 0 runs all. CI has no time for all, and what is drawn must run.
DRAWN = int(os.environ.get("WALLAROO_LONG_UNITS", "0"))
REMARKS = pytest.StashKey[list[str]]()  # what the summary reports of how tests were run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="write the golden files again instead of comparing")


LANGUAGES = ("python", "go")
# Files of which each test starts what it needs: any process of pytest takes the next test.
APART = {
    f"tests/test_{name}.py"
    for name in (
        *(
            "bad_input",
            "bound",
            "cluster",
            "cluster_application",
            "conformance",
            "dataframe_job",
            "fault",
            "feature",
            "full_disk",
            "available_now",
            "goka_cases",
            "kafka",
            "kafka_at_least_once",
            "kafka_exactly_once",
            "kafka_gateway",
            "kafka_letters",
            "kafka_records",
            "tutorial_kafka",
            "memory_cases",
            "mixed_language",
            "model",
            "poison_run",
        ),
        *(
            "recovery",
            "remote_run",
            "rescale",
            "convert_run",
            "run_at_least_once",
            "run_cases",
            "run_delivery",
            "run_failure",
        ),
        "window",
    )
} | {"runtime/tests/test_change.py"}
# Files whose tests share what is started once for each language.
BY_LANGUAGE = {"tests/test_run_word_count.py", "runtime/tests/test_poison.py"}
# Files whose tests share a session of the fixture `spark`. Two processes of pytest have one each: in one process these
# tests would take longer than all others together. The last name that fits a file counts.
SESSIONS = {
    "spark": "dataframe* goka_begin neighbours",
    "another spark": "dataframe_timers dataframe_w* model_* rows spark spark_[lw]* state_store thrown",
}
ON_ONE_SPARK = {
    f"runtime/tests/{path.name}": session
    for session, names in SESSIONS.items()
    for name in names.split()
    for path in (HERE.parent / "runtime" / "tests").glob(f"test_{name}.py")
}
del ON_ONE_SPARK["runtime/tests/test_dataframe_session.py"]
# Files that share the process of the fixture `java_client`, which is compiled before.
ON_ONE_JAVA = {f"runtime/tests/test_{name}.py" for name in ("audit", "channel", "state_ending", "trace", "trace_user")}


def unit(nodeid: str) -> str:
    """Return what is common to tests that stay together, in order, in one process of pytest; else a file's tests do."""
    file, _, name = nodeid.partition("::")
    if file in APART:
        return nodeid
    if file in BY_LANGUAGE:
        return file + next((language for language in LANGUAGES if language in re.split(r"[\[\]-]", name)), "")
    return "java" if file in ON_ONE_JAVA else ON_ONE_SPARK.get(file, file)


class Scheduler(LoadScopeScheduling):
    """Hands units to processes, in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def remove_node(self, node: Any) -> str | None:
        """Give what is left of an ended process to others, without the test that ended it: that would go on forever."""
        work = [tests for tests in self.assigned_work[node].values() if not all(tests.values())]
        ended = next((test for tests in work for test, is_done in tests.items() if not is_done), None)
        if ended:
            work[0][ended] = True
        super().remove_node(node)
        return ended

    def _reschedule(self, node: Any) -> None:
        if node in self.registered_collections:  # a new process may not yet have said what it can run
            super()._reschedule(node)

    def schedule(self) -> None:
        """Let a new process begin with its last test, too: it waits until it knows that no other follows."""
        super().schedule()
        if not self.workqueue:
            for node in self.nodes:
                node.shutdown()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    return Scheduler(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Draw long tests where only some are to run, and let the units that take longest come first.

    These are the units that start Spark, those of many tests before others. At the end the processes then share what
    is short.

    Raises:
        UsageError: A file uses the one Spark session, and may get another.
    """
    long = {item: unit(item.nodeid) for item in items if item.get_closest_marker("long") is not None}
    of_spark = (item for item in items if item not in long and "spark" in getattr(item, "fixturenames", ()))
    sharing = {item.nodeid.split("::")[0] for item in of_spark}
    if lost := sorted(sharing - ON_ONE_SPARK.keys()):
        raise pytest.UsageError(f"SESSIONS in tests/conftest.py has not {', '.join(lost)}")  # noqa: EM102
    units = {*long.values()}
    if 0 < DRAWN < len(units):
        commit = head()
        drawn = sorted(units, key=lambda name: zlib.crc32(f"{commit} {name}".encode()))[:DRAWN]
        rest = {item for item, name in long.items() if name not in drawn}
        config.hook.pytest_deselected(items=[*rest])
        items[:] = [item for item in items if item not in rest]
        number = f"{DRAWN} of {len(units)} units, {len(long) - len(rest)} of {len(long)} long tests"
        config.stash[REMARKS].append(f"{number}, drawn for commit {commit[:8]}; `make test-long` runs all")
    ranks: dict[str, int] = {}
    sizes = Counter(unit(item.nodeid) for item in items)
    for item in items:
        names = {marker.name for marker in item.iter_markers()}
        rank = 0 if "jvm" in names else 1 if "slow" in names else 2
        name = unit(item.nodeid)
        ranks[name] = min(rank, ranks.get(name, rank))
    items.sort(key=lambda item: (ranks[unit(item.nodeid)], -sizes[unit(item.nodeid)]))


def head() -> str:
    """Return the commit that is tested."""
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True).stdout.strip()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REMARKS] = []
    config.pluginmanager.register(ProcessGuard())


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Give the remarks of a process of pytest to the one that writes the summary."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["remarks"] = session.config.stash[REMARKS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    remarks, its = node.config.stash[REMARKS], getattr(node, "workeroutput", {}).get("remarks", ())
    remarks += [remark for remark in its if remark not in remarks]


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
    from wallaroo_runtime.program.build import build

    return build(HERE / "conformance")


@pytest.fixture(scope="session")
def only_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Broker"]:
    """Give a process of pytest its Kafka broker: a start costs as much processor time as ten small tests."""
    from support.kafka import Broker

    broker = Broker(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def broker(only_broker: "Broker") -> Iterator["Broker"]:
    """Give a file of tests a broker without the topics of other files."""
    if not only_broker.is_alive:  # the first file, or one whose test has failed while the broker was away
        only_broker.start()
    yield only_broker
    if only_broker.is_alive:
        only_broker.thaw()
        only_broker.delete(*(name for name in only_broker.cluster.metadata().topics if not name.startswith("__")))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, remark: Callable[[str], None]) -> Iterator["Cluster"]:
    """Start the master of a cluster of hosts; workers come when they are wanted."""
    from support.host import Scene
    from support.standalone import Cluster

    with Scene(tmp_path_factory.mktemp("hosts")) as scene:
        remark(f"the cluster's hosts: {scene}")
        cluster = Cluster(scene)
        yield cluster
        cluster.close()


@pytest.fixture
def deployment(cluster: "Cluster") -> Iterator["Deployment"]:
    """Give two Spark workers, a gateway, an egress, and machines for drivers."""
    from support.standalone import Deployment

    cluster.alive(2)
    with Deployment(cluster) as deployment:
        yield deployment


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return what packs a program, once."""
    from support.run import wallaroo

    folder = tmp_path_factory.mktemp("archives")

    def packed(name: str, program: Path, *more: str, inputs: str = "127.0.0.1:7010") -> Path:
        file = folder / f"{name}.tar.gz"
        if not file.exists():
            addresses = (*(("--in", inputs) if inputs else ()), "--out", "127.0.0.1:7002")
            done = wallaroo("pack", program, "-o", file, *addresses, *more, seconds=300)
            assert done.returncode == 0, done.stderr
        return file

    return packed
