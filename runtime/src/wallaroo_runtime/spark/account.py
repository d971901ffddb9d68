"""Finds lost and repeated messages of a micro-batch, by comparing the counts that its tasks report.

Each task reports an account: how many messages it received and sent. `worker/Audit.java` checks each call of a worker.
This module checks the transfers between calls: from the journal to the tasks before the first shuffle (level 0), from
the rows of one level to the tasks of the next one, from the last level to the staged files.

An attempt of a task sends its account with its rows to one of the partitions, and each row names the attempt that made
the row. So an attempt that fails reports nothing, and a repeated or speculative attempt never counts twice. If rows of
several attempts of one task are fetched, some of their accounts may be missing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.plan.plan import STATE_ENTRIES
from wallaroo_runtime.spark.batch_report import Stores, stores_of
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.worker.step_count import StepCounts, VisitCounts, add_up


@dataclass(slots=True)
class Account:
    """The account of one attempt of a task: how many messages it received, sent and staged.

    Attributes:
        level: Number of shuffles before the task.
        task: Spark's number of the attempt, which no other attempt has.
        made: Number of messages sent to other tasks, by bucket and port (number of the step or sink that gets them).
        taken: Number of messages received in rows, by bucket, the attempt that made the row, and port.
        makers: Level and partition of the attempts that made the received rows, by number of the attempt.
        staged: Number of messages staged for publishing, by port; last level only.
        read: Number of messages read from journals.
        records: Number of messages from sources that Spark reads.
        bytes_by_file: Bytes of journals read from files; `bytes_by_grpc`: bytes of journals sent by a gateway.
        visits: Counts of visits (calls of user code for every key of a state), by the id of the visit.
        steps: Counts of sources, steps and sinks, by path.
        arrived: Number of messages read from journals, by the time of their arrival in milliseconds.
        stores: Number of keys and bytes of the log of each bucket that was processed, by stage and bucket.
        begun: Time at which each stage began to call its worker, in milliseconds since 1970.
        ended: Time at which the task ended.
        endings: Descriptions of worker processes that ended by themselves, by executor and number.
    """

    batch: int
    level: int
    partition: int
    task: int
    read: int = 0
    records: int = 0
    bytes_by_file: int = 0
    bytes_by_grpc: int = 0
    made: Counter[tuple[int, int]] = field(default_factory=Counter)
    taken: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    makers: dict[int, tuple[int, int]] = field(default_factory=dict)
    staged: Counter[int] = field(default_factory=Counter)
    visits: VisitCounts = field(default_factory=dict)
    steps: StepCounts = field(default_factory=dict)
    arrived: Counter[int] = field(default_factory=Counter)
    stores: Stores = field(default_factory=dict)
    begun: Mapping[str, int] = field(default_factory=dict)
    ended: int = 0
    endings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Account":
        """Read the account that a task in Java has written (`TaskAccount`)."""
        counts = ("batch", "level", "partition", "task", "read", "records", "bytes_by_file", "bytes_by_grpc")
        account = cls(*(value[name] for name in counts))
        account.made.update({(bucket, port): count for bucket, port, count in value["made"]})
        account.taken.update({(bucket, task, port): count for bucket, task, port, count in value["taken"]})
        account.makers = {int(task): (level, partition) for task, (level, partition) in value["makers"].items()}
        account.staged.update({int(port): count for port, count in value["staged"].items()})
        account.arrived.update({int(time): count for time, count in value["arrived"].items()})
        account.visits = {int(number): Counter(counts) for number, counts in value["visits"].items()}
        account.steps = {path: Counter(numbers) for path, numbers in value["steps"].items()}
        account.stores = stores_of(value["stores"])
        account.begun, account.ended, account.endings = value["begun"], value["ended"], value["endings"]
        return account


Accounts = dict[int, Account]  # accounts of one micro-batch, by number of the attempt


def last_attempts(batch: int, accounts: Accounts) -> list[Account]:
    """Return one account for each task of a micro-batch: that of its last attempt."""
    ordered = sorted(accounts.values(), key=lambda each: each.task)
    return list({(each.level, each.partition): each for each in ordered if each.batch == batch}.values())


def visits_of(batch: int, accounts: Accounts) -> VisitCounts:
    """Add up the counts of visits (calls of user code for every key of a state) over the tasks of a micro-batch."""
    visits: VisitCounts = {}
    for account in last_attempts(batch, accounts):
        add_up(visits, account.visits)
    return visits


Messages = Counter[tuple[int, int]]  # by bucket and port
Taken = Counter[tuple[int, int, int]]  # by bucket, attempt that sent them, and port
NOBODY = -1  # in place of an attempt or level that is not known
Slot = tuple[int, int]  # level and partition, which name a task: all its attempts have the same ones


class Balance:
    """Compares, for each task of a micro-batch, the messages that it sent with those that arrived at other tasks.

    Args:
        plan: Determines the level that receives each port, and the partition that has each bucket.
    """

    def __init__(self, plan: Plan) -> None:
        self._last = len(plan.levels) - 1
        self._partitions = plan.shuffle_partitions
        self._takers = {
            node.port: number
            for number, level in enumerate(plan.levels)
            for stage in level
            for node in stage.entries
            if node.kind in STATE_ENTRIES
        }

    def check(self, batch: int, accounts: Accounts, files: Iterable[StagedFile], planned: int) -> None:
        """Check that no message was lost or repeated between journal, tasks and staged files.

        Args:
            accounts: The accounts of successful attempts.
            files: The staged files that are about to be published.
            planned: Number of messages that Spark has planned to read from journals.

        Raises:
            RunError: I902 with the first difference, if there is one.
        """
        mine = [account for account in accounts.values() if account.batch == batch]
        for reason in chain(self._read(mine, planned), self._shuffled(mine), self._staged(mine, files)):
            what, effect = f"micro-batch {batch}", "nothing of it was published"
            raise RunError.of("I902", what=what, effect=effect, reason=f"{reason}; {len(mine)} tasks have reported")

    def _read(self, accounts: Iterable[Account], planned: int) -> Iterator[str]:
        read: dict[int, list[int]] = defaultdict(list)
        for account in accounts:
            if account.level == 0:
                read[account.partition].append(account.read)
        least, most = sum(map(min, read.values())), sum(map(max, read.values()))
        if not least <= planned <= most:
            yield f"{planned} messages of the journal are planned, level 0 has read {most}"

    def _shuffled(self, accounts: Sequence[Account]) -> Iterator[str]:
        """Yield a description of each difference between the messages that tasks sent and the messages that arrived."""
        attempts: dict[Slot, list[Account]] = defaultdict(list)
        for account in accounts:
            attempts[account.level, account.partition].append(account)
        slots = {task: slot for account in accounts for task, slot in account.makers.items()}
        slots |= {account.task: slot for slot, accounts_of in attempts.items() for account in accounts_of}
        sent = self._by_goal(accounts)
        for goal in product(range(1, self._last + 1), range(self._partitions)):
            for taker in attempts.get(goal) or [Account(0, *goal, task=NOBODY)]:
                if not dict.__eq__(taker.taken, sent[goal]):  # dict's comparison is ten times as fast as Counter's
                    yield from _arrived(goal, taker, sent[goal], attempts, slots=slots)

    def _by_goal(self, accounts: Iterable[Account]) -> Mapping[Slot, Taken]:
        """Count the messages that all attempts sent to each task. The counters have the keys of `Account.taken`."""
        by_goal: dict[Slot, Taken] = defaultdict(Counter)
        for account in accounts:
            for (bucket, port), count in account.made.items():
                by_goal[self._takers.get(port, self._last), bucket % self._partitions][bucket, account.task, port] = (
                    count
                )
        return by_goal

    def _staged(self, accounts: Iterable[Account], files: Iterable[StagedFile]) -> Iterator[str]:
        offers: dict[int, list[Counter[int]]] = defaultdict(list)
        for account in accounts:
            if account.level == self._last:
                offers[account.partition].append(account.staged)
        in_files: dict[int, Counter[int]] = defaultdict(Counter)
        for file in files:
            in_files[file.partition][file.port] += file.messages
        for partition in sorted({*offers, *in_files}):
            staged = offers.get(partition) or [Counter()]
            if in_files[partition] not in staged:
                yield _not_staged(partition, self._last, staged[-1], in_files[partition])


def _not_staged(partition: int, level: int, staged: Counter[int], in_files: Counter[int]) -> str:
    port = min(port for port in {*staged, *in_files} if staged[port] != in_files[port])
    return (
        f"partition {partition} of level {level} gave {staged[port]} messages for port {port}, "
        f"its files have {in_files[port]}"
    )


def _arrived(
    goal: Slot, taker: Account, sent: Taken, attempts: Mapping[Slot, Sequence[Account]], *, slots: Mapping[int, Slot]
) -> Iterator[str]:
    """Compare the messages that tasks sent to the task `goal` with those that arrived there. Yield the differences.

    Args:
        goal: The task that received the messages.
        taker: Account of an attempt of this task.
        sent: Messages that all attempts of other tasks sent to the task.
        attempts: Accounts of the attempts of each task.
        slots: Task of each attempt, by number of the attempt.
    """
    offers, arrived = _by_maker(sent, slots), _by_maker(taker.taken, slots)
    for slot in sorted({*offers, *arrived}):
        offered, taken = offers.get(slot, {}), arrived.get(slot, {})
        if not taken and len(offered) < len(attempts.get(slot, ())):
            continue  # another attempt of the sending task sent no messages to this task
        attempt = max(taken or offered)
        if all(attempt != account.task for account in attempts.get(slot, ())) and slot[0] != NOBODY:
            continue  # the account of this attempt was in rows of an earlier fetch
        offer = offered.get(attempt, Messages())
        came = sum(taken.values(), Messages())
        if came != offer:
            bucket, port = min(key for key in {*offer, *came} if offer[key] != came[key])
            yield (
                f"partition {slot[1]} of level {slot[0]} made {offer[bucket, port]} messages for bucket {bucket}, port "
                f"{port}; {came[bucket, port]} of them came to partition {goal[1]} of level {goal[0]}"
            )


def _by_maker(taken: Taken, slots: Mapping[int, Slot]) -> dict[Slot, dict[int, Messages]]:
    """Group counts of messages by the task that sent them, and then by the attempt of this task."""
    messages: dict[Slot, dict[int, Messages]] = defaultdict(lambda: defaultdict(Counter))
    for (bucket, task, port), count in taken.items():
        if count:
            messages[slots.get(task, (NOBODY, task))][task][bucket, port] = count
    return messages
