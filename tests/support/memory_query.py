"""Questions about the states of an application that runs in memory, as `wallaroo state` asks them."""

from collections.abc import Iterable, Iterator

from wallaroo_runtime.memory.local import LocalCalls, LocalClient
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.spark.state_store.choice import StateChoice, StateRow, row_bytes
from wallaroo_runtime.spark.state_store.state_query import StateQuery
from wallaroo_runtime.storage.state_log import latest_states
from wallaroo_runtime.worker.idempotent_call import WorkerShower

BATCH = 4


class MemoryLogs:
    """The logs of a run in memory."""

    def __init__(self, run: MemoryRun) -> None:
        self.run, self.asked = run, list[tuple[int, ...]]()

    def batch(self) -> int:
        return BATCH

    def rows(self, stage: str, choice: StateChoice, batch: int, buckets: tuple[int, ...] = ()) -> Iterator[StateRow]:
        assert batch == BATCH
        self.asked.append(buckets)
        found = [row for log in self.run._engine.store.logs(stage) for row in chosen(choice, log)]
        yield from sorted(found)[: choice.limit] if choice.limit is not None else found


def chosen(choice: StateChoice, entries: Iterable[bytes]) -> list[StateRow]:
    """Return the chosen states of a log, in the order of their keys: what `ChosenStates` of Java does."""
    most = choice.most_bytes
    found = [
        StateRow(port, key, encoding, len(value), value if most is None or len(value) <= most else b"")
        for (port, key), (encoding, value) in latest_states(entries).items()
        if port in choice.ports
        and (choice.keys is None or key in choice.keys)
        and (choice.after is None or key > choice.after)
        and key.startswith(choice.prefixes)
    ]
    found.sort(key=lambda row: (row.key, row.port))
    size = 0
    for at, row in enumerate(found):
        if at > 1 and choice.page_bytes is not None and size > choice.page_bytes:  # a page has one state at least
            return found[:at][: choice.limit]
        size += row_bytes(row)
    return found[: choice.limit]


class LocalShower(WorkerShower, LocalCalls):
    """Asks the worker of this process."""


def query_of(run: MemoryRun) -> StateQuery:
    """Return what answers questions about the states of a run."""
    channel = run._clients["main"]
    if isinstance(channel, LocalClient):
        return StateQuery(run.plan, MemoryLogs(run), lambda worker: LocalShower(channel.calls, worker))
    target = channel.endpoints().connection.target
    return StateQuery(run.plan, MemoryLogs(run), lambda worker: WorkerShower(target, worker))
