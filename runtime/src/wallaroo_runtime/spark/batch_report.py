"""The report of a micro-batch, or of a query in real-time mode since the last look, for the monitor."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from wallaroo_runtime.worker.step_count import StepCounts, add_steps

Stores = dict[tuple[str, int], tuple[int, int]]  # by stage and bucket: keys, bytes of the log


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The report of a micro-batch, once it is published.

    Attributes:
        batch: Its number.
        begun_ms: When its tasks began, in milliseconds since 1970.
        steps: What passed sources, steps and sinks, by path.
        arrived: Its messages by the time of their arrival in milliseconds since 1970, where that is known.
        stores: Keys of each stage and bucket that it ran, and the bytes of their log.
        emitted: Messages that it published, by port of the sink.
    """

    batch: int
    begun_ms: int
    published_ms: int
    steps: StepCounts = field(default_factory=dict)
    arrived: Counter[int] = field(default_factory=Counter)
    stores: Stores = field(default_factory=dict)
    emitted: Counter[int] = field(default_factory=Counter)

    def add(self, steps: StepCounts, arrived: Mapping[int, int], stores: Stores) -> None:
        """Add the counts of a task's attempt."""
        add_steps(self.steps, steps)
        self.arrived.update(arrived)
        self.stores.update(stores)


@dataclass(frozen=True, slots=True)
class LiveReport:
    """The report of a query in real-time mode since the last one.

    Attributes:
        offset: Bytes of the journal whose output is all in the outbox; -1: not known yet.
        steps: What passed sources, steps and sinks since then, by path.
        stores: Keys of each stage and bucket that has run, and the bytes of their log.
        times: Messages by milliseconds that they took, by stage of `latency_ms`, as far as the engine knows.
    """

    offset: int = -1
    steps: StepCounts = field(default_factory=dict)
    stores: Stores = field(default_factory=dict)
    times: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
