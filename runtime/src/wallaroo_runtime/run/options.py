"""The options of the command line of a run, by topic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wallaroo_runtime.checkpoint.manifest import MICROBATCH
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.peer.remote import RemoteOptions
from wallaroo_runtime.spark.machine.master import cores, shuffle_partitions

PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True)
class AppOptions:
    """The application to run.

    Attributes:
        name: A Python file or module, a Go package directory, a worker binary, a topology file, or an archive.
        args: What the application sees on its command line.
        inputs: `--in`; overrides the sources of a topology file or archive.
        outputs: `--out`; overrides the sinks of a topology file or archive.
        attach: Name of a worker that somebody else has started to the socket on which it serves.
    """

    name: str
    args: tuple[str, ...] = ()
    inputs: str = ""
    outputs: str = ""
    attach: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """Where a run continues from.

    Attributes:
        path: The directory; None: the application's own.
        location: The checkpoint, when it is at a URL of a file system that Hadoop knows; else empty.
        fresh: Whether to start over.
        continues_goka: Whether a new one begins with the tables and offsets that Goka's own processors left.
        accepts_changed: Whether fields of states that a changed program has not may be lost.
        topic_reset: Where a topic is read whose records are gone, or that was created again: `start`, in real-time mode
            also `end`; empty: nowhere.
    """

    path: Path | None = None
    location: str = ""
    fresh: bool = False
    continues_goka: bool = False
    accepts_changed: bool = False
    topic_reset: str = ""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The Spark that runs it.

    Attributes:
        master: Address of the Spark master.
        worker_python: Interpreter of Python workers; empty: the one that runs Spark's tasks.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    worker_python: str = ""

    @property
    def asked(self) -> int:
        """Shuffle partitions that the user asks for; 0: none are."""
        return int(self.conf.get(PARTITIONS, 0))

    @property
    def partitions(self) -> int:
        """Shuffle partitions of a new checkpoint."""
        return self.asked or shuffle_partitions(self.master)

    @property
    def settings(self) -> dict[str, str]:
        """The settings that only concern Spark; a checkpoint decides on the partitions."""
        return {name: value for name, value in self.conf.items() if name != PARTITIONS}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """A run.

    Attributes:
        spark: The Spark that runs it.
        bounds: Limits of journal, outbox and state cache.
        remote: The remote gateways and egress.
        on_error: `dead_letter` or `fail`, in place of what the application says; empty: what it says.
        stop_when_idle: Seconds without input after which the run ends; None: it goes on.
        available_now: Whether it ends when all that was there at its start is processed and delivered.
        mode: `microbatch` or `realtime`: how Spark runs the plan.
        monitor: HOST:PORT at which the monitor serves; empty: there is none.
        monitor_token: Who has it may read what the monitor shows; empty: a new one.
    """

    app: AppOptions
    checkpoint: CheckpointOptions = field(default_factory=CheckpointOptions)
    spark: SparkOptions = field(default_factory=SparkOptions)
    bounds: Bounds = field(default_factory=Bounds)
    remote: RemoteOptions = field(default_factory=RemoteOptions)
    on_error: str = ""
    stop_when_idle: float | None = None
    available_now: bool = False
    mode: str = MICROBATCH
    monitor: str = ""
    monitor_token: str = ""

    @property
    def runs_code_here(self) -> bool:
        """Whether the workers are on the driver's machine."""
        return cores(self.spark.master) is not None
