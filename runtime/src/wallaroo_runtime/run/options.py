"""The options of the command line of a run, by topic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wallaroo_runtime.checkpoint.directory import default_directory
from wallaroo_runtime.checkpoint.manifest import MICROBATCH
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.peer.remote import RemoteOptions
from wallaroo_runtime.program.application import Application
from wallaroo_runtime.spark.machine.master import cores, shuffle_partitions

PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True)
class AppOptions:
    """Options that name the application to run, its arguments and addresses.

    Attributes:
        name: A Python file or module, a Go package directory, a worker binary, a topology file, or an archive.
        args: Arguments of the application's own command line.
        inputs: `--in`; overrides the sources of a topology file or archive.
        outputs: `--out`; overrides the sinks of a topology file or archive.
        attach: Sockets of workers that were not started by the runtime, by name of the worker.
    """

    name: str
    args: tuple[str, ...] = ()
    inputs: str = ""
    outputs: str = ""
    attach: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """Options for the checkpoint from which a run continues.

    Attributes:
        path: Directory of the checkpoint; None for the application's default directory.
        location: URL of the checkpoint in a file system that Hadoop knows; else empty.
        fresh: Whether to start over.
        continues_goka: Whether a new checkpoint begins with the tables and offsets that Goka's own processors stored.
        accepts_changed: Whether fields of states that a changed program does not have may be lost.
        topic_reset: Where reading continues if records of a topic are gone or the topic was created again: `start`, in
            real-time mode also `end`. If empty, such an event ends the run.
    """

    path: Path | None = None
    location: str = ""
    fresh: bool = False
    continues_goka: bool = False
    accepts_changed: bool = False
    topic_reset: str = ""

    def directory(self, application: Application) -> Path:
        """Return the run's directory on this machine: the checkpoint, or local files for a checkpoint at a URL."""
        if self.path is not None and not self.location:
            return self.path
        topology, place = application.topology, Path(self.location) if self.location else application.path
        return default_directory(topology.name, topology.workers[0].language, place)


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Options for the Spark that runs the application.

    Attributes:
        master: Address of the Spark master.
        conf: Settings of Spark by the user.
        worker_python: Interpreter of Python workers; empty for the interpreter of Spark's tasks.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    worker_python: str = ""

    @property
    def asked(self) -> int:
        """Number of shuffle partitions that the user asks for; 0 if the user asks for none."""
        return int(self.conf.get(PARTITIONS, 0))

    @property
    def partitions(self) -> int:
        """Number of shuffle partitions of a new checkpoint."""
        return self.asked or shuffle_partitions(self.master)

    @property
    def settings(self) -> dict[str, str]:
        """The settings for Spark, without the number of partitions, which the checkpoint determines."""
        return {name: value for name, value in self.conf.items() if name != PARTITIONS}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run.

    Attributes:
        spark: The Spark that runs it.
        bounds: Limits of journal, outbox and state cache.
        remote: The remote gateways and egress.
        on_error: `dead_letter` or `fail`, instead of the application's policy; empty for the application's policy.
        stop_when_idle: Seconds without input after which the run ends; None if the run goes on without input.
        available_now: Whether the run ends when all input that existed at its start is processed and delivered.
        mode: `microbatch` or `realtime`: the way in which Spark runs the plan.
        monitor: HOST:PORT at which the monitor serves; empty if there is no monitor.
        monitor_token: Token for requests to the monitor; empty for a new token.
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
        """True if the workers are on the driver's machine."""
        return cores(self.spark.master) is not None
