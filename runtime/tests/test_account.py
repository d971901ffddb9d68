"""Accounts of a micro-batch: whatever is lost, doubled or misrouted between tasks is found, and nothing else."""

import json
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.counted import counted
from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Node, NodeKind, Plan, Stage
from wallaroo_runtime.plan.bucket import bucket_ids
from wallaroo_runtime.spark.account import Account, Accounts, Balance, last_attempts
from wallaroo_runtime.spark.batch_report import BatchReport
from wallaroo_runtime.spark.session import _keep_accumulators_quiet
from wallaroo_runtime.storage.outbox.staging import StagedFile

BUCKETS, PARTITIONS, SOURCE, FIRST, SECOND, SINK = 6, 3, 0, 1, 2, 3
PORTS = {1: FIRST, 2: SECOND}  # of the state step that each level begins with


def _plan(levels: int) -> Plan:
    stages = [(Stage("s0", "main", (Node("0/sources/0", NodeKind.SOURCE, port=SOURCE),), BUCKETS),)]
    for level in range(1, levels):
        entry = Node(f"0/steps/{level}", NodeKind.STATE_COMPUTATION, (), PORTS[level], "state", PORTS[level])
        stages.append((Stage(f"s{level}", "main", (entry,), BUCKETS),))
    return Plan("a", {}, tuple(stages), PARTITIONS, bucket_ids(PARTITIONS, BUCKETS // PARTITIONS))


@dataclass
class Row:
    """A frame on its way: who made it for whom, and how many messages it has."""

    bucket: int
    task: int
    port: int
    count: int


@dataclass
class Batch:
    """A micro-batch of drawn tasks, played attempt by attempt."""

    levels: int
    accounts: Accounts = field(default_factory=dict)
    files: list[StagedFile] = field(default_factory=list)
    planned: int = 0
    rows: list[Row] = field(default_factory=list)  # all that were made, in order


def _play(draw: Any, levels: int, damage: Any, differs: bool = False) -> Batch:
    """Run drawn tasks, each in one or two successful attempts.

    Args:
        draw: Draws.
        levels: How many.
        damage: Changes the rows of a shuffle.
        differs: Whether attempts of one task give different messages, as user code that draws lots does.
    """
    batch, last, rows = Batch(levels), levels - 1, []
    for level in range(levels):
        made: list[Row] = []
        taken = damage(rows)
        partitions = range(PARTITIONS if level else draw(st.integers(1, 3)))
        for partition in partitions:
            mine = [row for row in taken if level and row.bucket % PARTITIONS == partition]
            if level and not mine:
                continue  # Spark's operator sees no key
            # Rows for later levels pass; those of this one end here.
            passing = [row for row in mine if level < last and row.port != PORTS[level]]
            ending = [row for row in mine if row not in passing]
            given = draw(_outputs(level, last))
            results = [
                _attempt(batch, level, partition, ending, draw(_outputs(level, last)) if differs else given)
                for _ in range(draw(st.integers(1, 2)))
            ]
            # What one attempt has made counts, whichever: the next level never sees rows of two of them.
            made += [*passing, *draw(st.sampled_from(results))]
        rows = made
        batch.rows += made
    return batch


def _outputs(level: int, last: int) -> st.SearchStrategy[list[tuple[int, int, int]]]:
    """Draw port, bucket and number of messages of what an attempt makes."""
    if level == last:
        return st.lists(st.tuples(st.sampled_from([SINK, DEAD_LETTER_PORT]), st.just(0), st.just(1)), max_size=2)
    keyed = st.sampled_from([port for at, port in PORTS.items() if level < at <= last])
    done = st.sampled_from([SINK, DEAD_LETTER_PORT])
    counts = st.integers(1, 3)
    return st.lists(
        st.tuples(keyed, st.integers(0, BUCKETS - 1), counts)
        | done.flatmap(lambda port: st.tuples(st.just(port), st.just(port % BUCKETS), counts)),
        max_size=4,
    )


def _attempt(
    batch: Batch, level: int, partition: int, mine: list[Row], outputs: list[tuple[int, int, int]]
) -> list[Row]:
    account = Account(7, level, partition, task=len(batch.accounts) + 1)
    batch.accounts[account.task] = account
    last = batch.levels - 1
    for row in mine:
        account.taken[row.bucket, row.task, row.port] += row.count
    if level == 0:
        is_first = sum(a.level == 0 and a.partition == partition for a in batch.accounts.values()) == 1
        account.read = 10 + partition
        batch.planned += account.read if is_first else 0
    if level == last:
        account.staged.update({SINK: sum(row.count for row in mine)})
        for port, _, count in outputs:
            account.staged[port] += count
        batch.files = [file for file in batch.files if file.partition != partition]
        batch.files += [StagedFile(port, "f", 1, 1, n, partition) for port, n in account.staged.items() if n]
        return []
    for port, bucket, count in outputs:
        account.made[bucket, port] += count
    return [Row(bucket, account.task, port, count) for port, bucket, count in outputs]


def _check(batch: Batch) -> None:
    Balance(_plan(batch.levels)).check(7, batch.accounts, batch.files, batch.planned)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(1, 3))
def test_what_arrives_is_accepted(data: st.DataObject, levels: int) -> None:
    _check(_play(data.draw, levels, lambda rows: data.draw(st.permutations(rows)), differs=data.draw(st.booleans())))


def _lost(draw: Any, rows: list[Row], at: int) -> list[Row]:
    return [*rows[:at], *rows[at + 1 :]]


def _doubled(draw: Any, rows: list[Row], at: int) -> list[Row]:
    return [*rows, rows[at]]


def _misrouted(draw: Any, rows: list[Row], at: int) -> list[Row]:
    bucket = draw(st.integers(0, BUCKETS - 1).filter(lambda each: each != rows[at].bucket))
    return [*rows[:at], replace(rows[at], bucket=bucket), *rows[at + 1 :]]


@pytest.mark.parametrize("damage", [_lost, _doubled, _misrouted])
@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(2, 3))
def test_what_is_damaged_between_levels_is_found(damage: Any, data: st.DataObject, levels: int) -> None:
    damaged = []

    def once(rows: list[Row]) -> list[Row]:
        if not rows or damaged:
            return rows
        damaged.append(True)
        return damage(data.draw, rows, data.draw(st.integers(0, len(rows) - 1)))

    batch = _play(data.draw, levels, once)
    if not damaged:
        _check(batch)
        return
    with pytest.raises(RunError, match="I902 the message counts of micro-batch 7 do not agree"):
        _check(batch)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(1, 3))
def test_files_and_ranges_that_differ_are_found(data: st.DataObject, levels: int) -> None:
    batch = _play(data.draw, levels, lambda rows: rows)
    if batch.files and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(batch.files) - 1))
        file = batch.files.pop(at)
        batch.files += data.draw(st.sampled_from([[], [file, file], [replace(file, messages=file.messages + 1)]]))
    else:
        batch.planned += data.draw(st.sampled_from([-1, 1, 100]))
    with pytest.raises(RunError, match="I902"):
        _check(batch)


def _simple() -> Accounts:
    maker = Account(7, 0, 0, 1, read=4, made=Counter({(2, FIRST): 4}))
    taker = Account(7, 1, 2, 2, taken=Counter({(2, 1, FIRST): 4}), staged=Counter({SINK: 4}))
    return {1: maker, 2: taker}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda found: found[0].update(read=3), "4 messages of the journal are planned, level 0 has read 3"),
        (
            lambda found: found[1].update(taken=Counter({(2, 1, FIRST): 3})),
            "partition 0 of level 0 made 4 messages for bucket 2, port 1; 3 of them came to partition 2 of level 1",
        ),
        (
            lambda found: found[1].update(taken=Counter({(2, 1, FIRST): 4, (2, 9, FIRST): 1})),
            "partition 9 of level -1 made 0 messages for bucket 2, port 1; 1 of them came to partition 2 of level 1",
        ),
        (
            lambda found: found[1].update(staged=Counter({SINK: 5})),
            "partition 2 of level 1 gave 5 messages for port 3, its files have 4",
        ),
    ],
)
def test_the_text_has_the_numbers(change: Any, reason: str) -> None:
    accounts, values = _simple(), defaultdict[int, dict[str, Any]](dict)
    change(values)
    accounts = {task: replace(accounts[task], **values[task - 1]) for task in accounts}
    with pytest.raises(RunError) as caught:
        Balance(_plan(2)).check(7, accounts, [StagedFile(SINK, "f", 1, 1, 4, 2)], 4)
    assert str(caught.value) == (
        f"I902 the message counts of micro-batch 7 do not agree, so nothing of it was published; {reason}; 2 tasks "
        f"have reported\n"
        "  fix: run again: the same messages are processed once more, and delivered results are not delivered twice; "
        "if this finding comes again, this is a bug of ours: please report it with the text above"
    )


class Accumulators:
    """PySpark's server of accumulators, whose thread is busy."""

    def __init__(self) -> None:
        self.may_end, self.has_ended = threading.Event(), threading.Event()

    def handle_error(self, *_: object) -> None:
        """Print, as that of the standard library does."""

    def shutdown(self) -> None:
        """Wait for the thread."""
        self.may_end.wait()
        self.has_ended.set()


def test_the_end_of_spark_waits_for_no_accumulators() -> None:
    server = Accumulators()
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(_accumulatorServer=server))
    for _ in range(2):  # as with each changed program
        _keep_accumulators_quiet(session)
    server.shutdown()
    assert not server.has_ended.is_set()
    server.may_end.set()
    assert server.has_ended.wait(60)


def test_an_attempt_whose_own_account_went_elsewhere_is_accepted() -> None:
    """Partition 2 has fetched rows of attempt 9, and the partition with the accounts those of attempt 1."""
    accounts = _simple()
    accounts[2] = replace(accounts[2], taken=Counter({(2, 9, FIRST): 4}), makers={9: (0, 0)})
    Balance(_plan(2)).check(7, accounts, [StagedFile(SINK, "f", 1, 1, 4, 2)], 4)


def test_an_account_is_read_as_a_task_writes_it() -> None:
    text = """{"batch": 7, "level": 1, "partition": 2, "task": 12, "read": 3, "records": 4, "bytes_by_file": 5,
        "bytes_by_grpc": 6, "made": [[1, 2, 3]], "taken": [[4, 11, 5, 6]], "makers": {"11": [0, 1]},
        "staged": {"9": 8}, "arrived": {"1000": 2}, "steps": {"0/steps/0": {"messages_in": 1}},
        "stores": {"s1": {"5": [7, 80]}}, "visits": {"3": {"keys": 2, "failed": 1}}, "begun": {"s1": 1001},
        "ended": 1002, "endings": {"driver, process 4": "gone"}}"""
    assert Account.from_json(json.loads(text)) == Account(
        *(7, 1, 2, 12), read=3, records=4, bytes_by_file=5, bytes_by_grpc=6, made=Counter({(1, 2): 3}),
        taken=Counter({(4, 11, 5): 6}), makers={11: (0, 1)}, staged=Counter({9: 8}), arrived=Counter({1000: 2}),
        steps={"0/steps/0": Counter(messages_in=1)}, stores={("s1", 5): (7, 80)}, visits={3: Counter(keys=2, failed=1)},
        begun={"s1": 1001}, ended=1002, endings={"driver, process 4": "gone"},
    )  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 50)), max_size=20))
def test_a_task_that_is_repeated_counts_once(attempts: list[tuple[int, int, int]]) -> None:
    accounts: Accounts = {}
    expected: dict[tuple[int, int], int] = {}
    for task, (level, partition, count) in enumerate(attempts):
        steps = {"0/steps/0": counted(count, count, 1)}
        accounts[task] = Account(7, level, partition, task, steps=steps, arrived=Counter({5: count}))
        expected[level, partition] = count
    accounts[99] = Account(6, 0, 0, 99, steps={"0/steps/0": counted(1000, 0, 0)})  # of another micro-batch
    report = BatchReport(7, 0, 0)
    for account in last_attempts(7, accounts):
        report.add(account.steps, account.arrived, account.stores)
    total = sum(expected.values())
    assert report.steps.get("0/steps/0", Counter()) == counted(total, total, len(expected))
    assert report.arrived.total() == total
