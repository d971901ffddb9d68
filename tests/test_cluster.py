"""A standalone cluster, each part a host of its own: some are killed, it grows and shrinks; the output stays exact."""

import os
import random
import sys
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from support.case import CASES, Case
from support.load import WORDS, vote_messages, word_messages
from support.run import TESTS, Receiver, Run, framed
from support.standalone import Deployment, kill, read_nothing_from_files

pytestmark = [pytest.mark.jvm, pytest.mark.cluster]
MESSAGES, PORTIONS, KILLS = 100_000, 50, 3
LONG_S = 600.0


class Stream:
    """Sends a load in portions on one connection, each when it is asked to."""

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


@pytest.mark.parametrize(
    ("name", "language"), [("word_count", "go"), pytest.param("alphabet", "python", marks=pytest.mark.long)]
)
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
        (added,) = cluster.add_workers()
        stream.send(5)
        received(0.55)
        run.wait_while_alive(lambda: bool(added.executors()), lambda: "an executor on the new worker")
        (only,) = cluster.alive(1)
        stream.send(PORTIONS)
        for part in sorted(random.uniform(0.56, 0.95) for _ in range(KILLS)):
            print(f"the only executor is killed after {part:.3f} of the output")
            received(part)
            run.wait_while_alive(lambda: bool(only.executors()), lambda: "an executor")
            kill(only.executors()[0])
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
        deployment.run(archive, receiver, "--conf", f"spark.wallaroo.worker.python={bare}") as run,
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
        more = cluster.add_workers(2)
        run.wait_while_alive(lambda: len(cluster.executors()) == 3, lambda: "three executors")
        run.wait_while_alive(lambda: len(count_once()) == 3, lambda: "state on three executors", LONG_S)
        assert places[0] != places[-1], "no state has moved"
        for worker in more:
            worker.lose()
        assert len(first.executors()) == 1
        run.wait_while_alive(lambda: len(count_once()) == 1, lambda: "state on one executor", LONG_S)
        assert places[-1] == places[0]
        read_nothing_from_files(run)
        assert run.stop() == 0, run.said()


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
            assert f"continuing from {deployment.checkpoint}" in "".join(run.output)
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
