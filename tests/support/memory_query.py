"""Questions about the states of an application that runs in memory, as `wallaroo state` asks them."""

from collections.abc import Iterator
from typing import Any

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.memory.channel import LocalChannel
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.run.state_query import StateQuery
from wallaroo_runtime.spark.state_store.choice import StateChoice, StateRow
from wallaroo_runtime.worker.show import Shown, WorkerShower, shown_of

BATCH = 4


class MemoryLogs:
    """The logs of a run in memory."""

    def __init__(self, run: MemoryRun) -> None:
        self.run, self.asked = run, list[tuple[int, ...]]()

    def batch(self) -> int:
        return BATCH

    def rows(self, stage: str, choice: StateChoice, batch: int, bucket_ids: tuple[int, ...] = ()) -> Iterator[StateRow]:
        assert batch == BATCH
        self.asked.append(bucket_ids)
        found = [row for log in self.run._engine.store.logs(stage) for row in choice.rows(log)]
        yield from sorted(found)[: choice.limit] if choice.limit is not None else found


class LocalShower:
    """Asks the worker of this process."""

    def __init__(self, channel: LocalChannel) -> None:
        self._calls = channel.calls

    def show(self, stage: pb.Stage, entries: Any) -> Shown:
        return shown_of("main", self._calls.show_state(pb.ShowStateRequest(stage=stage, entries=entries)))


def query_of(run: MemoryRun) -> StateQuery:
    """Return what answers questions about the states of a run."""
    channel = run._channels["main"]
    if isinstance(channel, LocalChannel):
        return StateQuery(run.plan, MemoryLogs(run), lambda worker: LocalShower(channel))
    target = channel.endpoints().connection.target
    return StateQuery(run.plan, MemoryLogs(run), lambda worker: WorkerShower(target, worker))
