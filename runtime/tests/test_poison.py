"""Messages that kill or hang a worker on real Spark: each becomes a dead letter, and costs no other message."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from support.spark_topology import options_in
from wallaroo_runtime.checkpoint.dead_letter import read_letters
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.spark.query import RunningQuery, start_query
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker import control

pytestmark = [pytest.mark.jvm, pytest.mark.long]
FOLDER = Path(__file__).with_name("poison")
DEADLINE_MS = 2000
KEYS = 40
LANGUAGES = ("python", "go")
FRAME_MESSAGES = 500
Published = Callable[[Path, int], list[str]]


@dataclass
class Poisoned:
    """The program on a checkpoint of its own."""

    spark: Any
    wait_until: Callable[..., None]
    published: Published
    checkpoint: Path
    topology: Topology

    def run(self, actions: dict[int, str], count: int, seconds: float, **options: Any) -> RunningQuery:
        """Process `count` messages, those of some positions with an action; returns the query when all is done."""
        plan = compile_topology(self.topology, shuffle_partitions=2)
        self.payloads = [payload(number, actions.get(number, "ok")) for number in range(count)]
        writer = JournalWriter(self.checkpoint / "journal")
        for start in range(0, count, FRAME_MESSAGES):
            some = self.payloads[start : start + FRAME_MESSAGES]
            wire = [len(each).to_bytes(4, "big") + each for each in some]
            writer.append(plan.ports["0/sources/0"], len(some), wire, timestamp_ms=1)
        writer.close()
        self.sink = plan.ports["0/sinks/0"]
        self.query = start_query(self.spark, plan, self.topology, options_in(self.checkpoint, **options))
        begin = time.monotonic()

        def is_done() -> bool:
            return self.query.exception() is not None or self.query.progress().messages_in == count

        self.wait_until(is_done, f"{count} messages", seconds)
        self.seconds = time.monotonic() - begin
        return self.query

    def assert_exact(self, expected: dict[int, str]) -> None:
        """Assert that just some messages are dead letters, with their codes, and that all others were counted."""
        assert self.query.exception() is None
        found = {letter.record.sequence: letter.record.code for letter in read_letters(self.checkpoint)}
        assert found == expected
        assert self.query.progress().dead_letters == len(expected)
        good = Counter(number % KEYS for number in range(len(self.payloads)) if number not in expected)
        lines = Counter(self.published(self.checkpoint, self.sink))
        assert lines == Counter(f"k{key} {count + 1}" for key, total in good.items() for count in range(total))

    def restarts(self) -> int:
        """Return how many times the worker was started again."""
        directory = Path(self.query.targets["main"].removeprefix("unix:")).parent
        return int(control.ask(directory, {"op": "wait"}, 30.0)["generation"]) - 1


def payload(number: int, action: str) -> bytes:
    """Return a message."""
    return b"\xff" if action == "decode" else f"k{number % KEYS} {action}".encode()


@pytest.fixture(params=LANGUAGES)
def poisoned(
    request: pytest.FixtureRequest, spark: Any, tmp_path: Path, wait_until: Callable[..., None], published: Published
) -> Iterator[Poisoned]:
    """Give the program in each language."""
    app = FOLDER / "app.py" if request.param == "python" else FOLDER
    topology = load_application(str(app), [], "", "").topology
    workers = tuple(replace(worker, call_deadline_ms=DEADLINE_MS) for worker in topology.workers)
    found = Poisoned(spark, wait_until, published, tmp_path, replace(topology, workers=workers))
    yield found
    found.query.stop()


CODES = {
    "decode": ("C505", "C505"),
    "raise": ("C501", "C501"),
    "wrong": ("C503", "C501"),
    "mutate": ("C501", "C501"),
    "first-exit": ("C508", "C508"),
    "state-exit": ("C508", "C508"),
    "first-kill": ("C508", "C508"),
    "state-kill": ("C508", "C508"),
    "first-hang": ("C509", "C509"),
    "state-hang": ("C509", "C509"),
}


def test_every_kind_of_poison(poisoned: Poisoned, request: pytest.FixtureRequest) -> None:
    language = LANGUAGES.index(poisoned.topology.workers[0].language)
    actions = {997 * number + 13: action for number, action in enumerate([*CODES, *CODES])}
    poisoned.run(actions, 20_000, 300.0)
    poisoned.assert_exact({number: CODES[action][language] for number, action in actions.items()})
    records = [letter.record for letter in read_letters(poisoned.checkpoint)]
    assert all(
        record.error.startswith("the worker ended while it ran this message; it ")
        for record in records
        if record.code == "C508"
    )
    hung = {record.error for record in records if record.code == "C509"}
    assert "no answer within 2 s" in hung <= {"no answer within 2 s", "no answer within 1 s"}  # a call's next get less
    print(f"{request.node.name}: 20000 messages, {len(actions)} of them poison: {poisoned.seconds:.1f} s")


@pytest.mark.parametrize("action", ["first-hang", "state-exit"])
def test_messages_that_kill_or_hang_cost_one_restart_each(
    poisoned: Poisoned, action: str, request: pytest.FixtureRequest
) -> None:
    count = 10 if action.endswith("hang") else 15  # more than what W406 allows of restarts without a cause
    actions = {number * 130 + 7: action for number in range(count)}
    poisoned.run(actions, 2000, 300.0)
    poisoned.assert_exact(dict.fromkeys(actions, "C509" if action.endswith("hang") else "C508"))
    restarts = poisoned.restarts()
    # A Go process runs two tasks side by side: which of two messages ended it shows when each runs alone.
    is_certain = action.endswith("hang") or poisoned.topology.workers[0].language == "python"
    assert restarts <= (count if is_certain else 2 * count)
    print(f"{request.node.name}: {count} messages, {restarts} restarts: {poisoned.seconds:.1f} s")


def test_messages_whose_state_ends_or_hangs_the_worker_when_it_is_written(poisoned: Poisoned) -> None:
    actions = {77: "save-exit", 78: "save-hang", 1203: "save-exit"}
    poisoned.run(actions, 2000, 300.0)
    poisoned.assert_exact({77: "C508", 78: "C509", 1203: "C508"})


@pytest.mark.parametrize(("action", "reason"), [("exit", "it exited with status 3"), ("hang", "no answer within 2 s")])
def test_a_state_that_ends_or_hangs_the_worker_when_it_is_read_is_named(
    poisoned: Poisoned, action: str, reason: str
) -> None:
    # Without room in its cache the worker reads each bucket from its log in each micro-batch.
    options: dict[str, Any] = {"cache_bytes": 1, "max_batch_bytes": 8192}
    query = poisoned.run({7: f"load-{action}"}, 2000, 300.0, **options)
    quoted = "'k7'" if poisoned.topology.workers[0].language == "python" else '"k7"'
    assert str(query.exception()) == (
        f'W415 worker "main" ended while it read the state of step "count", key {quoted}; {reason}\n'
        "  fix: correct the code that serializes and deserializes this type; the run continues from the checkpoint"
    )


def test_many_slow_messages_are_no_poison(poisoned: Poisoned) -> None:
    actions = {number: "state-slow" for number in range(0, 1800, KEYS)}  # one key: 4.5 s in one call
    poisoned.run(actions, 2000, 300.0)
    poisoned.assert_exact({})


def test_on_error_fail_stops_at_such_a_message(poisoned: Poisoned) -> None:
    query = poisoned.run({70: "first-exit"}, 100, 300.0, on_error="fail")
    assert str(query.exception()) == (
        "R611 the query stopped; C508 the worker ended while it ran this message; it exited with status 3 "
        "(b'k30 first-exit')\n  fix: correct the user code and run again, or run with --on-error dead_letter"
    )
