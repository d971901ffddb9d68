"""A standalone cluster, each part a host of its own: some are killed, it grows and shrinks; the output stays exact."""

import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

import window
from case import CASES, Case, payloads
from host import Host, Scene
from load import WORDS, vote_messages, word_messages
from run import TESTS, WALLAROO, Receiver, Run, finish, framed, wallaroo
from standalone import Cluster, Deployment, kill
from wallaroo_runtime.worker.archive import MANIFEST

pytestmark = [pytest.mark.jvm, pytest.mark.cluster]
MESSAGES, PORTIONS = 500_000, 50
ADDRESSES = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
LONG_S = 300.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, remark: Callable[[str], None]) -> Iterator[Cluster]:
    with Scene(tmp_path_factory.mktemp("hosts")) as scene:
        remark(f"the cluster's hosts: {scene}")
        cluster = Cluster(scene)
        yield cluster
        cluster.close()


@pytest.fixture
def deployment(cluster: Cluster) -> Iterator[Deployment]:
    """Give two Spark workers, a gateway, an egress, and machines for drivers."""
    cluster.alive(2)
    with Deployment(cluster) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return what packs a program, once."""
    folder = tmp_path_factory.mktemp("archives")

    def packed(name: str, program: Path, *more: str) -> Path:
        file = folder / f"{name}.tar.gz"
        if not file.exists():
            done = wallaroo("pack", program, "-o", file, *ADDRESSES, *more, seconds=LONG_S)
            assert done.returncode == 0, done.stderr
        return file

    return packed


class Stream:
    """Sends a load in portions on one connection, each when it is told to."""

    def __init__(self, run: Run, messages: list[bytes], portions: int) -> None:
        self._connection = run.connect()
        size = -(-len(messages) // portions)
        self._portions = [framed(messages[at : at + size]) for at in range(0, len(messages), size)]

    def send(self, count: int) -> None:
        """Send the next portions."""
        for portion in self._portions[:count]:
            self._connection.sendall(portion)
        del self._portions[:count]

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def read_nothing_from_files(run: Run) -> None:
    """Check that tasks read the journal over the network alone."""
    assert run.last("bytes_by_grpc") > 0
    assert run.last("bytes_by_file") == 0


@pytest.mark.parametrize("language", ["python", "go"])
@pytest.mark.parametrize("name", ["word_count", "alphabet"])
def test_executor_and_worker_killed_worker_added(
    name: str, language: str, deployment: Deployment, archives: Callable[..., Path]
) -> None:
    archive = archives(f"{name}-{language}", Case(name).app(language))
    messages, size, check = word_messages(MESSAGES) if name == "word_count" else vote_messages(MESSAGES)
    cluster = deployment.cluster
    _, second = cluster.alive(2)
    with (
        Receiver(cluster.scene.listen()) as receiver,
        deployment.run(archive, receiver) as run,
        Stream(run.ready(), messages, PORTIONS) as stream,
    ):

        def received(part: float) -> None:
            run.wait_while_alive(
                lambda: receiver.size >= size * part,
                lambda: f"{part:.0%} of {size} bytes, have {receiver.size}",
                LONG_S,
            )

        stream.send(15)
        received(0.02)
        before = cluster.executors()
        assert len(before) == 2
        stream.send(5)
        kill(before[0])
        received(0.3)
        stream.send(10)
        second.lose()
        added = cluster.add_worker()
        stream.send(5)
        received(0.55)
        run.wait_while_alive(lambda: bool(added.executors()), lambda: "an executor on the new worker")
        stream.send(PORTIONS)
        received(1.0)
        assert not set(before) & set(cluster.executors())
        run.wait_for("messages_processed", MESSAGES)
        assert run.last("dead_letters") == 0
        read_nothing_from_files(run)
        check(receiver.data())
        assert run.stop() == 0, run.said()
        assert receiver.size == size, "more came at the end"


def test_cluster_grows_and_shrinks_and_state_moves(deployment: Deployment, archives: Callable[..., Path]) -> None:
    """Workers are Python with numpy from the archive, in an interpreter that has neither numpy nor ours."""
    bare = Path(sys.base_prefix) / "bin" / "python3"
    archive = archives("places", TESTS / "cluster" / "app.py", "--arch", os.environ.get("GOARCH", "amd64"))
    cluster = deployment.cluster
    (first,) = cluster.alive(1)
    rounds = 0
    with (
        Receiver(cluster.scene.listen()) as receiver,
        deployment.run(archive, receiver, "--worker-python", bare) as run,
    ):
        run.ready()
        places: list[dict[str, str]] = []

        def count_once() -> set[str]:
            """Send each word once more; return the executors that counted them."""
            nonlocal rounds
            rounds += 1
            run.send(framed([" ".join(WORDS).encode()]))
            lines = receiver.wait_for_lines(rounds * len(WORDS), run)[(rounds - 1) * len(WORDS) :]
            found = {}
            for line in lines:
                word, count, place, numpy = line.split(" ")
                assert int(count) == rounds, line
                executor = Path(place).parents[1]
                assert numpy == f"{Path(place).parent}/site/numpy"
                assert executor.parents[2] in (worker.host.folder for worker in cluster.workers), line
                found[word] = str(executor)
            assert sorted(found) == sorted(WORDS)
            places.append(found)
            return set(found.values())

        assert len(count_once()) == 1
        more = [cluster.add_worker(), cluster.add_worker()]
        run.wait_while_alive(lambda: len(cluster.executors()) == 3, lambda: "three executors")
        run.wait_while_alive(lambda: len(count_once()) == 3, lambda: "state on three executors", LONG_S)
        assert places[0] != places[-1], "no state has moved"
        hosts = [worker.host.address for worker in (first, *more)]
        wait_for_moves(run, hosts, {f"{n} on {hosts[n]}" for n in (1, 2)})
        for worker in more:
            worker.lose()
        assert len(first.executors()) == 1
        run.wait_while_alive(lambda: len(count_once()) == 1, lambda: "state on one executor", LONG_S)
        assert places[-1] == places[0]
        wait_for_moves(run, hosts[:1], {f"0 on {hosts[0]}"})
        read_nothing_from_files(run)
        assert run.stop() == 0, run.said()


def wait_for_moves(run: Run, hosts: list[str], goals: set[str]) -> None:
    """Wait until the run has told on which machines partitions are, and to which executors they have moved."""

    def told() -> set[str]:
        moves = (line.strip() for line in run.errors if line.startswith("state of s1/"))
        return {move.partition(" to executor ")[2] for move in moves}

    def machines() -> list[str]:
        return sorted(name.partition(" on ")[2] for name in run.last("executors") or ())

    run.wait_while_alive(lambda: machines() == sorted(hosts), lambda: f"state on {hosts}, is on {machines()}")
    found = sorted(name for names in run.last("executors").values() for name in names)
    assert found == [f"s1/{number}" for number in range(4)]
    run.wait_while_alive(lambda: goals <= told(), lambda: f"moves to executors {goals - told()}")


def test_driver_killed_and_restarted_on_another_host(
    deployment: Deployment, archives: Callable[..., Path], tmp_path: Path
) -> None:
    archive = archives("word_count-go", CASES / "word_count")
    digest = sha256(archive.read_bytes()).digest()
    messages, size, check = word_messages(MESSAGES)
    with Receiver(deployment.cluster.scene.listen()) as receiver:
        with deployment.run(archive, receiver, verb="run") as run:
            stream = Stream(run.ready(), messages, PORTIONS)
            stream.send(20)
            run.wait_while_alive(lambda: receiver.size > size * 0.02, lambda: "some output", LONG_S)
            kill(run.process.pid)
        sender = threading.Thread(target=stream.send, args=(PORTIONS,))
        sender.start()  # the gateway does not need a driver
        with stream, deployment.run(archive, receiver, verb="run") as run:
            run.ready()
            assert f"continuing from {deployment.checkpoint}" in "".join(run.errors)
            run.wait_while_alive(lambda: receiver.size >= size, lambda: f"{size} bytes, have {receiver.size}", LONG_S)
            sender.join()
            run.wait_for("messages_processed", MESSAGES)
            check(receiver.data())
            read_nothing_from_files(run)
            assert run.stop() == 0, run.said()
            assert receiver.size == size
    # The same file, on one machine.
    with Receiver() as alone, Run(archive, alone, tmp_path / "checkpoint") as run:
        run.ready().send(framed(messages))
        run.wait_while_alive(lambda: alone.size >= size, lambda: f"{size} bytes, have {alone.size}", LONG_S)
        assert run.stop() == 0, run.said()
    check(alone.data())
    assert sorted(alone.lines()) == sorted(receiver.lines())
    assert sha256(archive.read_bytes()).digest() == digest


def test_orders_see_the_quotes_that_arrived_before_them(deployment: Deployment, archives: Callable[..., Path]) -> None:
    """Market spread: two TCP sources at one gateway, so that there is one order."""
    archive = archives("market", Case("market_spread").app("python"), "--in", "127.0.0.1:7010,127.0.0.1:7011")
    quotes = [(f"S{i * 7 % 150}", 100 + i % 50, (i * 13 % 6) / 50) for i in range(2000)]
    orders = [(f"S{i * 11 % 160}", i, i % 9 + 1) for i in range(2000)]
    known = {symbol: (bid, bid + spread) for symbol, bid, spread in quotes}
    expected = []
    for symbol, number, quantity in orders:
        bid, offer = known.get(symbol, (0.0, 0.0))
        if symbol not in known or offer - bid > 0.05:
            expected.append(f"{symbol} {number} {quantity} {bid:.2f} {offer:.2f}")
    assert 500 < len(expected) < 1500
    with (
        Receiver(deployment.cluster.scene.listen()) as receiver,
        deployment.run(archive, receiver, sources=2) as run,
    ):
        run.ready()
        texts = (
            [f"{symbol} {bid:.2f} {bid + spread:.2f}" for symbol, bid, spread in quotes],
            [" ".join(map(str, order)) for order in orders],
        )
        for source, lines in enumerate(texts):
            with run.connect(source) as connection:
                connection.sendall(framed(line.encode() for line in lines))
                finish(connection)
        receiver.wait_for_lines(len(expected), run)
        run.wait_for("messages_processed", 4000)
        assert run.last("dead_letters") == 0
        read_nothing_from_files(run)
        assert run.stop() == 0, run.said()
        arranged = Case("market_spread").arranged
        assert arranged(receiver.lines()) == arranged(expected)


def test_windows_equal_the_reference(deployment: Deployment, archives: Callable[..., Path]) -> None:
    """Windows of 9 s every 3 s, by the time in the data."""
    archive = archives("windows", window.APP, "--windows", "event")
    journal = deployment.gateway.directory / "journal"
    with Receiver(deployment.cluster.scene.listen()) as receiver, deployment.run(archive, receiver) as run:
        run.ready().send(framed(window.texts(20_000, 7)))
        run.wait_while_alive(lambda: window.silence(journal) >= window.SILENCE_MS, lambda: "ticks", LONG_S)
        reference, expected = window.expected(journal, "event")
        assert not reference.keys, "windows are open"
        assert len(expected) > 1000
        receiver.wait_for_lines(len(expected), run)
        read_nothing_from_files(run)
        assert run.stop() == 0, run.said()
        assert window.by_key(receiver.lines()) == window.by_key(expected)


def test_wrong_settings_of_spark_are_told_without_a_stack_trace(
    deployment: Deployment, archives: Callable[..., Path]
) -> None:
    host, archive = deployment.driver(archives("word_count-go", CASES / "word_count"))
    settings = ("--conf", "spark.network.timeout=1s", *deployment.options(host)[2:])
    where = ("--master", deployment.cluster.url, "--checkpoint", host.folder / "checkpoint", "--in", "127.0.0.1:0")
    done = host.run(WALLAROO, "run", archive, *where, *settings)
    assert done.returncode == 1
    assert done.stderr.startswith("R611 the query stopped; Spark did not start: org.apache.spark.SparkIllegalArgument")
    assert "\tat " not in done.stderr


def rewritten(archive: Path, file: Path, member: str, old: bytes, new: bytes) -> Path:
    """Return a copy of an archive with other bytes in a member."""
    with tarfile.open(archive) as source, tarfile.open(file, "w:gz") as target:
        for entry in source:
            data = (source.extractfile(entry) or io.BytesIO()).read()
            if entry.name == member:
                assert old in data
                data = data.replace(old, new)
                entry.size = len(data)
            target.addfile(entry, io.BytesIO(data))
    return file


def test_what_is_refused_starts_nothing(deployment: Deployment, archives: Callable[..., Path], tmp_path: Path) -> None:
    cluster = deployment.cluster
    good = archives("word_count-go", CASES / "word_count")
    changed = rewritten(good, tmp_path / "changed.tar.gz", "topology.json", b"Count Words", b"count words")
    newer = rewritten(good, tmp_path / "newer.tar.gz", MANIFEST, b'"protocol_version": 1', b'"protocol_version": 9')
    host, archive = deployment.driver(good)
    for file in (changed, newer, archives("alphabet-go", Case("alphabet").folder)):
        shutil.copy(file, host.folder)
    other, nowhere = cluster.shared / "other", f"spark://{host.address}:7077"
    local = ("--master", "local[1]", "--in", "127.0.0.1:0", "--stop-when-idle", "0", "--checkpoint", other)
    done = host.run(WALLAROO, "run", host.folder / "alphabet-go.tar.gz", *local)
    assert done.returncode == 0, done.stderr
    before = traces(cluster)
    for name, more, said in (
        (
            changed.name,
            (),
            "R655 {} is not the archive of an application, or was changed after it was packed; top",
        ),
        (newer.name, (), "R656 {} was packed for another release; its workers speak protocol 9; this runtime knows"),
        (archive.name, ("--master", nowhere), f"R659 Spark master {nowhere} cannot be reached; {host.address}:7077: "),
        (
            archive.name,
            ("--checkpoint", other),
            f'R603 checkpoint {other} belongs to application "Alphabet", not to ',
        ),
    ):
        done = submitted(deployment, host, host.folder / name, *more)
        assert done.returncode in (1, 2, 3), done.stderr
        assert done.stderr.startswith(said.format(host.folder / name)), done.stderr
        assert "\n  fix: " in done.stderr
        assert traces(cluster) == before, "something was started"


def submitted(deployment: Deployment, host: Host, app: Path, *more: object) -> subprocess.CompletedProcess[str]:
    """Submit an archive that will not run."""
    where = ("--in", deployment.source(), "--checkpoint", deployment.checkpoint)
    return host.run(WALLAROO, "submit", app, *where, *deployment.options(host), *more, seconds=LONG_S)


def traces(cluster: Cluster) -> list[str]:
    """Return what shows that something was started: files of all hosts, and applications that the master knows."""
    names = [str(path) for path in cluster.scene.folder.rglob("*") if path.name != "log"]
    return sorted(names) + re.findall("Registered app .*", cluster.master.said())


def test_missing_processor_is_found_before_sources_listen(
    deployment: Deployment, archives: Callable[..., Path]
) -> None:
    other = {"x86_64": "arm64"}.get(platform.machine(), "amd64")
    host, archive = deployment.driver(archives("other", CASES / "reverse", "--arch", other))
    done = submitted(deployment, host, archive)
    assert done.returncode != 0
    assert "R657 " in done.stderr, done.stderr
    assert f" is packed for linux-{other}; the executor on " in done.stderr
    address, port = deployment.source().split(":")
    with pytest.raises(ConnectionRefusedError):
        deployment.scene.connect((address, int(port)))
    assert not list(Path(deployment.checkpoint.removeprefix("file://")).glob("spark/*"))


def test_connector_sends_to_a_gateway_elsewhere(deployment: Deployment, archives: Callable[..., Path]) -> None:
    """The connector is on a machine of its own, too."""
    case = Case("celsius_connectors")
    archive = archives("celsius", case.app("python"))
    sender = deployment.scene.add(f"{deployment.name}-connector")
    expected = case.expected("python")
    with Receiver(deployment.scene.listen()) as receiver, deployment.run(archive, receiver) as run:
        ((host, port),) = run.ready().addresses()
        done = sender.run(
            sys.executable, case.folder / "feed.py", "--application-module", case.app("python"), "--connector",
            "celsius", "--celsius-file", case.folder / "input.txt", "--celsius-host", host, "--celsius-port", port,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        run.wait_while_alive(lambda: len(payloads(receiver.data())) >= len(expected), lambda: f"{len(expected)} frames")
        read_nothing_from_files(run)
        assert run.stop() == 0, run.said()
        assert case.arranged(payloads(receiver.data())) == case.arranged(expected)
