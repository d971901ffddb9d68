"""Reads and writes the record of a checkpoint, `application.json`, on this machine or through Hadoop."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.directory import MANIFEST, SPARK
from wallaroo_runtime.durable.directory import Directory, LocalDirectory
from wallaroo_runtime.durable.file import damage
from wallaroo_runtime.durable.record import pack_record, unpack_record
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.plan.port import Ports
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

FORMAT_VERSION = 3
# For a checkpoint that begins with data of Goka's processors: they will be taken over, or were taken over.
PENDING, TAKEN = "pending", "taken"
MICROBATCH, REALTIME = MODES = ("microbatch", "realtime")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The record of a checkpoint: the application of the last run, and settings that all runs share.

    Attributes:
        topology: Topology document of the application in its last run.
        shuffle_partitions: Number of shuffle partitions since the checkpoint was begun or last rescaled.
        buckets_per_partition: Number of buckets of each partition since the checkpoint was begun or last rescaled.
        ports: Ports of sources, steps and sinks: the numbers by which frames name them. A port stays if the topology
            changes.
        id: Random id, by which remote gateways and egress identify the checkpoint of their data.
        services: The remote services with which the checkpoint was begun, each with the id of its journal or outbox.
        journal: Id of the local journal to which the checkpoint refers; empty if there is none.
        spark: Name of Spark's own checkpoint in the directory.
        mode: Mode in which Spark runs the application: `microbatch` or `realtime`.
        microbatch: In real-time mode, the numbers of partitions and buckets that the checkpoint had in micro-batch
            mode; empty if it was begun in real-time mode.
        rescaled: The last micro-batch before a rescale, and the last one that the rescale added; (-1, -1) if the
            checkpoint was never rescaled.
        rerun_batches: Published micro-batches that a changed program has run again after a kill.
        topics: Ids of the topics that were read, by the port of the Kafka source, if the brokers gave ids.
        goka: Data of Goka's processors: `PENDING` before they are taken over, `TAKEN` afterwards; else empty.
        format_version: Version of the format of all files in the checkpoint.
    """

    topology: Mapping[str, Any]
    shuffle_partitions: int
    buckets_per_partition: int
    ports: Ports
    id: str
    services: Mapping[str, str] = field(default_factory=dict)
    journal: str = ""
    spark: str = SPARK
    mode: str = MICROBATCH
    microbatch: tuple[int, ...] = ()
    rescaled: tuple[int, int] = (-1, -1)
    rerun_batches: tuple[int, ...] = ()
    topics: Mapping[int, str] = field(default_factory=dict)
    goka: str = ""
    format_version: int = FORMAT_VERSION

    @property
    def name(self) -> str:
        """Name of the checkpoint's application."""
        return str(self.topology["name"])

    @property
    def is_realtime(self) -> bool:
        """Whether the application runs in real-time mode."""
        return self.mode == REALTIME

    @property
    def numbers(self) -> tuple[int, int]:
        """Number of shuffle partitions, and number of buckets of each partition."""
        return self.shuffle_partitions, self.buckets_per_partition

    def load(self) -> Topology:
        """Return the topology of the application in its last run."""
        return load_document(self.topology)

    def plan(self, topology: Topology | None = None) -> Plan:
        """Compile a topology, by default that of the last run, with the ports, partitions and buckets of the record."""
        return compile_topology(
            topology or self.load(),
            shuffle_partitions=self.shuffle_partitions,
            buckets_per_partition=self.buckets_per_partition,
            ports=self.ports,
        )


def read_manifest(checkpoint: Path) -> Manifest:
    """Return the record of a checkpoint in a directory of this machine.

    Raises:
        RunError: See `manifest_in`.
    """
    return manifest_in(LocalDirectory(checkpoint))


def manifest_in(directory: Directory) -> Manifest:
    """Return the record of a checkpoint in a local or remote directory.

    Raises:
        RunError: R616 if there is no record. For other errors see `find_manifest`.
    """
    if (manifest := find_manifest(directory)) is None:
        raise RunError.of("R616", path=f"{directory}/{MANIFEST}", done="read", reason="there is no such file")
    return manifest


def find_manifest(directory: Directory) -> Manifest | None:
    """Return the record of a checkpoint; None if the directory is no checkpoint.

    Raises:
        RunError: R698 if the file is damaged, R615 if its format has another version, or an error of the directory.
    """
    path = f"{directory}/{MANIFEST}"
    try:
        if (content := directory.read(MANIFEST)) is None:
            return None
        version = json.loads(content)["format_version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damage(error, path) from error
    if version != FORMAT_VERSION:
        reason = f"format version {version} is not known; this runtime reads version {FORMAT_VERSION}"
        raise RunError.of("R615", path=directory, reason=reason)
    return unpack_record(Manifest, content, path)


def write_manifest(directory: Directory, manifest: Manifest) -> None:
    """Replace the record of a checkpoint (`application.json`)."""
    directory.write(MANIFEST, pack_record(manifest))


def other_application(directory: Directory, actual: str, expected: str) -> RunError:
    """Return the error that a checkpoint belongs to another application (R603)."""
    return RunError.of("R603", path=directory, actual=actual, expected=expected, command=directory.removal)
