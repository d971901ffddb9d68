"""A standalone cluster of several processes: parts of it are killed, it grows and shrinks; the output stays exact."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from case import CASES
from life import free_port
from run import TESTS, WAIT_S, WALLAROO, Receiver, Run, framed, wait_until, wallaroo
from standalone import Cluster, Daemon, options

pytestmark = [pytest.mark.jvm, pytest.mark.cluster]
MESSAGES, PORTIONS = 500_000, 50
ADDRESSES = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
LONG_S = 300.0
WORDS = [f"word{number}" for number in range(40)]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return what packs a program, once."""
    folder = tmp_path_factory.mktemp("archives")

    def packed(name: str, program: Path, *more: str) -> Path:
        file = folder / f"{name}.tar.gz"
        if not file.exists():
            done = wallaroo("pack", program, "-o", file, *more, *ADDRESSES, seconds=LONG_S)
            assert done.returncode == 0, done.stderr
        return file

    return packed


def workers(cluster: Cluster, count: int) -> list[Daemon]:
    """Let the cluster have so many workers."""
    alive = [worker for worker in cluster.workers if worker.process.poll() is None]
    alive += [cluster.add_worker() for _ in range(count - len(alive))]
    for worker in alive[count:]:
        worker.kill()
    return alive[:count]


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


def is_gone(pid: int) -> bool:
    """Say whether a process has ended; one that waits to be reaped has."""
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_gone(pid), lambda: f"the end of {pid}")


@contextlib.contextmanager
def services(folder: Path) -> Iterator[list[str]]:
    """Run gateway and egress on disks of their own; yields the options that name them."""
    token = folder / "token"
    token.write_text("0123456789abcdef" * 3, encoding="ascii")
    token.chmod(0o600)
    found = ["--token-file", str(token)]
    with contextlib.ExitStack() as stack:
        for kind, data in (("gateway", "--journal"), ("egress", "--outbox")):
            command = [WALLAROO, kind, data, folder / kind, "--listen", "127.0.0.1:0", *found[:2], "--json"]
            process = stack.enter_context(subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True))
            stack.callback(process.terminate)
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], WAIT_S)[0], f"the {kind} said nothing in {WAIT_S:g} s"
            found += [f"--{kind}", json.loads(process.stdout.readline())["address"]]
        yield found


def lose(worker: Daemon) -> None:
    """Kill a worker and its executors, as if their machine were gone."""
    lost = worker.executors()
    worker.kill()
    for pid in lost:
        if not is_gone(pid):
            kill(pid)


def word_messages() -> tuple[list[bytes], int, Callable[[bytes], None]]:
    """Return messages of two words, the bytes of the output, and its check."""
    pairs = [f"{WORDS[i % 40]} {WORDS[(i * 7 + i // 40) % 40]}" for i in range(MESSAGES)]
    expected = Counter(word for pair in pairs for word in pair.split(" "))
    size = sum(len(f"{word} => {n}\n") for word, total in expected.items() for n in range(1, total + 1))

    def check(data: bytes) -> None:
        counts: Counter[str] = Counter()
        for line in data.decode().splitlines():
            word, _, count = line.partition(" => ")
            counts[word] += 1
            assert int(count) == counts[word], line
        assert counts == expected

    return [pair.encode() for pair in pairs], size, check


def vote_messages() -> tuple[list[bytes], int, Callable[[bytes], None]]:
    """Return votes for letters, the bytes of the output, and its check."""
    votes = [(LETTERS[i % 26], i % 1000) for i in range(MESSAGES)]

    def check(data: bytes) -> None:
        last = dict.fromkeys(LETTERS, 0)
        left = {letter: [count for other, count in votes if other == letter] for letter in LETTERS}
        for rows in left.values():
            rows.reverse()
        for at in range(0, len(data), 13):
            letter, total = data[at + 4 : at + 5].decode(), int.from_bytes(data[at + 5 : at + 13], "big")
            last[letter] += left[letter].pop()
            assert total == last[letter], f"{letter} {total}"
        assert not any(left.values())

    messages = [letter.encode() + count.to_bytes(4, "big") for letter, count in votes]
    return messages, 13 * MESSAGES, check


@pytest.mark.parametrize(("name", "language"), [("word_count", "python"), ("word_count", "go"), ("alphabet", "go")])
def test_executor_and_worker_killed_worker_added(
    name: str, language: str, cluster: Cluster, archives: Callable[..., Path], tmp_path: Path
) -> None:
    program = CASES / name / ("app.py" if language == "python" else "")
    archive = archives(f"{name}-{language}", program)
    messages, size, check = word_messages() if name == "word_count" else vote_messages()
    _, second = workers(cluster, 2)
    with (
        Receiver() as receiver,
        Run(archive, receiver, tmp_path / "checkpoint", *options(cluster), verb="submit") as run,
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
        lose(second)
        added = cluster.add_worker()
        stream.send(5)
        received(0.55)
        run.wait_while_alive(lambda: bool(added.executors()), lambda: "an executor on the new worker")
        stream.send(PORTIONS)
        received(1.0)
        assert not set(before) & set(cluster.executors())
        run.wait_for("messages_processed", MESSAGES)
        assert run.last("dead_letters") == 0
        check(receiver.data())
        assert run.stop() == 0, run.said()
        assert receiver.size == size, "more came at the end"


def test_cluster_grows_and_shrinks_and_state_moves(
    cluster: Cluster, archives: Callable[..., Path], tmp_path: Path
) -> None:
    """Workers are Python with numpy from the archive, in an interpreter that has neither numpy nor ours."""
    bare = Path(sys.base_prefix) / "bin" / "python3"
    archive = archives("places", TESTS / "cluster" / "app.py", "--arch", os.environ.get("GOARCH", "amd64"))
    (first,) = workers(cluster, 1)
    rounds = 0
    with (
        Receiver() as receiver,
        Run(
            archive, receiver, tmp_path / "checkpoint", *options(cluster), "--worker-python", bare, verb="submit"
        ) as run,
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
                assert executor.parents[2] in (worker.folder for worker in cluster.workers), line
                found[word] = str(executor)
            assert sorted(found) == sorted(WORDS)
            places.append(found)
            return set(found.values())

        assert len(count_once()) == 1
        more = [cluster.add_worker(), cluster.add_worker()]
        run.wait_while_alive(lambda: len(cluster.executors()) == 3, lambda: "three executors")
        run.wait_while_alive(lambda: len(count_once()) == 3, lambda: "state on three executors", LONG_S)
        moved = [word for word in WORDS if places[0][word] != places[-1][word]]
        assert moved, "no partition has moved"
        for worker in more:
            lose(worker)
        assert len(first.executors()) == 1
        run.wait_while_alive(lambda: len(count_once()) == 1, lambda: "state on one executor", LONG_S)
        assert places[-1] == places[0]
        assert run.stop() == 0, run.said()


def test_driver_killed_and_restarted_elsewhere(cluster: Cluster, archives: Callable[..., Path], tmp_path: Path) -> None:
    archive = archives("word_count-go", CASES / "word_count")
    messages, size, check = word_messages()
    workers(cluster, 2)
    checkpoint = tmp_path / "checkpoint"
    source = f"127.0.0.1:{free_port(7)}"
    with Receiver() as receiver, services(tmp_path) as named:
        with Run(archive, receiver, checkpoint, *options(cluster), *named, source=source) as run:
            stream = Stream(run.ready(), messages, PORTIONS)
            stream.send(20)
            run.wait_while_alive(lambda: receiver.size > size * 0.02, lambda: "some output", LONG_S)
            run.process.kill()
            run.process.wait()
        other = tmp_path / "another" / "host"
        other.mkdir(parents=True)
        moved = archive.rename(other / archive.name)
        sender = threading.Thread(target=stream.send, args=(PORTIONS,))
        sender.start()  # the gateway does not need a driver
        with stream, Run(moved, receiver, checkpoint, *options(cluster), *named, source=source) as run:
            run.ready()
            run.wait_while_alive(lambda: receiver.size >= size, lambda: f"{size} bytes, have {receiver.size}", LONG_S)
            sender.join()
            run.wait_for("messages_processed", MESSAGES)
            check(receiver.data())
            assert run.last("bytes_by_file") == 0
            assert run.last("bytes_by_grpc") > 0
            assert run.stop() == 0, run.said()
            assert receiver.size == size
        moved.rename(archive)


def test_wrong_settings_of_spark_are_told_without_a_stack_trace(
    cluster: Cluster, archives: Callable[..., Path], tmp_path: Path
) -> None:
    archive = archives("word_count-go", CASES / "word_count")
    conf = ("--conf", "spark.network.timeout=1s")
    done = wallaroo("run", archive, *options(cluster), *conf, "--checkpoint", tmp_path / "c", "--in", "127.0.0.1:0")
    assert done.returncode == 1
    assert done.stderr.startswith("R611 the query stopped; Spark did not start: org.apache.spark.SparkIllegalArgument")
    assert "\tat " not in done.stderr
