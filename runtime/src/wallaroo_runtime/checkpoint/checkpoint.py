"""The checkpoint directory of an application: what was run there, and whether this program may go on."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.checkpoint.compatible import (
    changed_code,
    check_states,
    draining,
    is_other_program,
    listed,
    safe_changes,
    states_of,
)
from wallaroo_runtime.checkpoint.directory import MANIFEST, SPARK, Place
from wallaroo_runtime.checkpoint.drain import Drain
from wallaroo_runtime.checkpoint.integrity import SparkFiles, check_journal, check_nothing_left
from wallaroo_runtime.checkpoint.manifest import (
    FORMAT_VERSION,
    MICROBATCH,
    PENDING,
    REALTIME,
    TAKEN,
    Directory,
    LocalDirectory,
    find_manifest,
    mode_of,
    other_application,
    sealed,
)
from wallaroo_runtime.checkpoint.uncommitted import refused
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.remote import RemoteOptions, check_known, service_names
from wallaroo_runtime.peer.takeover import Hold
from wallaroo_runtime.plan.change import Change
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.port import Ports, first_ports, kept_ports
from wallaroo_runtime.plan.stage import Plan
from wallaroo_runtime.storage.outbox.check import check_outbox
from wallaroo_runtime.storage.outbox.live_state import safe_live
from wallaroo_runtime.storage.outbox.log import Published, read_base
from wallaroo_runtime.storage.outbox.written import read_written
from wallaroo_runtime.topology.canonical import interface_hash
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

HERE = RemoteOptions()
FOLDERS = ("journal", "staging", "outbox", "dead-letters", "logs")


@dataclass(slots=True)
class Checkpoint:
    """A checkpoint directory, opened for one topology by `open`.

    Attributes:
        directory: Where its record of the application and Spark's own checkpoint are, if not in `path`.
        shuffle_partitions: As the checkpoint was begun with.
        buckets_per_partition: As the checkpoint was begun with.
        ports: The ports of the topology; what was there before keeps its own.
        services: The remote services that the checkpoint was begun with, each with the id of its journal or outbox.
        id: Random; by it remote gateways and a remote egress know whose data they keep.
        continues: Whether an earlier run of the application was found.
        changed_code: Names of workers whose code hash is not that of the last run.
        changes: What else of the interface, or of how workers start, changed since then, and was accepted.
        is_ahead: Whether the program changed after output of a micro-batch had left that Spark has not committed.
        accepted: Messages, in real-time mode, that a changed program runs again though their results have left.
        rerun_batches: Published micro-batches that a changed program has run again after a kill.
        repeated: The micro-batch of which something has left and that is not committed; -1: none.
        spark: Name of Spark's own checkpoint in the directory.
        repairs: What a loss of power had left, and was repaired.
        journal: Id of the local journal that the checkpoint refers to; empty: of none.
        rescaled: The micro-batches between which the state was rescaled.
        mode: How Spark runs it: `microbatch` or `realtime`.
        microbatch: Shuffle partitions and buckets of a converted checkpoint in micro-batches; empty: of no one.
        topics: Port of a Kafka source to the id of the topic that was read, if the brokers gave one.
        goka: Whether what Goka's processors left is to be taken over, or was: `PENDING`, `TAKEN`; empty: neither.
    """

    path: Path
    directory: Directory
    topology: Topology
    shuffle_partitions: int
    buckets_per_partition: int
    ports: Ports
    services: dict[str, str]
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    continues: bool = False
    changed_code: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    is_ahead: bool = False
    spark: str = SPARK
    repairs: list[Diagnostic] = field(default_factory=list)
    journal: str = ""
    rescaled: tuple[int, int] = (-1, -1)
    mode: str = MICROBATCH
    microbatch: tuple[int, ...] = ()
    goka: str = ""
    accepted: range = range(0)
    rerun_batches: list[int] = field(default_factory=list)
    repeated: int = -1
    topics: dict[int, str] = field(default_factory=dict)
    _former: Mapping[str, Any] | None = None  # record of another program, in real-time mode
    _accepts_changed: bool = False

    @classmethod
    def open(
        cls,
        place: Place,
        topology: Topology,
        *,
        shuffle_partitions: int,
        buckets_per_partition: int,
        remote: RemoteOptions = HERE,
        directory: Directory | None = None,
        mode: str = MICROBATCH,
        continues_goka: bool = False,
        accepts_changed: bool = False,
    ) -> "Checkpoint":
        """Check what is in the directory against the topology, and record the topology.

        Args:
            place: The directory, locked.
            topology: What is to be run.
            shuffle_partitions: Of a new checkpoint.
            buckets_per_partition: Of a new checkpoint.
            remote: The remote gateways and egress.
            directory: Where its record is, if not in `place`.
            mode: How Spark is to run it.
            continues_goka: Whether a new checkpoint begins with what Goka's processors left.
            accepts_changed: Whether a changed program may lose fields of states, or run messages again whose results
                have left.

        Raises:
            RunError: R757, it was begun in the other mode. R788, it was begun without what Goka's processors left.
                R603, R605, R615, R790; the directory is as before then.
                R698, a file is damaged or missing, or does not belong to the others.
                R642 or R643 when a remote service must report what it holds.
        """
        opened = cls(
            path=place.path,
            directory=directory or LocalDirectory(place.path),
            topology=topology,
            shuffle_partitions=shuffle_partitions,
            buckets_per_partition=buckets_per_partition,
            ports=first_ports(topology),
            services=dict.fromkeys(service_names(remote), ""),
            mode=mode,
            goka=PENDING if continues_goka else "",
        )
        manifest = find_manifest(opened.directory)
        if manifest is None:
            check_nothing_left(opened.directory)
        else:
            _check_version(manifest, opened.directory)
            opened._continue(manifest, remote, accepts_changed=accepts_changed)
        opened._make_folders()
        opened._write()
        return opened

    def record(self, service: str, store: str) -> None:
        """Record that the checkpoint refers to a journal or outbox from now on."""
        if self.services[service] != store:
            self.services[service] = store
            self._write()

    def record_journal(self, journal: str) -> None:
        """Record which local journal the checkpoint refers to from now on."""
        if self.journal != journal:
            self.journal = journal
            self._write()

    @property
    def topic_ids(self) -> dict[str, str]:
        """Path of a Kafka source to the id of the topic that was read, if it is known."""
        return {path: self.topics[port] for path, port in self.ports.parts.items() if port in self.topics}

    def record_topics(self, ids: Mapping[str, str]) -> None:
        """Record the ids of the topics that are read from now on, by path; an empty one is not known."""
        found = self.topics | {self.ports.parts[path]: topic for path, topic in ids.items() if topic}
        if self.topics != found:
            self.topics = found
            self._write()

    def plan(self) -> Plan:
        """Compile the topology with the ports, partitions and buckets that the checkpoint keeps."""
        return compile_topology(
            self.topology,
            shuffle_partitions=self.shuffle_partitions,
            buckets_per_partition=self.buckets_per_partition,
            ports=self.ports,
        )

    def check_published(self, published: Published) -> None:
        """Compare Spark's checkpoint with the last micro-batch of a remote outbox.

        Raises:
            RunError: R698, they do not belong together.
        """
        self._check_spark(published)
        known = [batch for batch in self.rerun_batches if batch <= published.batch]
        if known != self.rerun_batches:
            self.rerun_batches = known
            self._write()

    def check_left(self, remote: RemoteOptions, *, is_attached: bool = False) -> None:
        """Refuse a changed program in real-time mode whose last run has delivered results that Spark has not committed.

        Args:
            remote: The remote gateways and egress.
            is_attached: Whether they serve this process: until then a driver in another place may still deliver.

        Raises:
            RunError: R790, the record is that of the former program again; those of `Drain.repeated`.
        """
        if self._former is None:
            return
        found = self._drain(remote).repeated(is_attached=is_attached)
        if found and not self._accepts_changed:
            self.directory.write(MANIFEST, sealed(self._former))
            raise refused(found)
        self.accepted = found

    def _continue(self, manifest: Mapping[str, Any], remote: RemoteOptions, *, accepts_changed: bool) -> None:
        """Go on where an earlier run ended; nothing is written before all is accepted."""
        _check_name(manifest, self.topology, self.directory)
        self._adopt(manifest, remote)
        self._check_files()
        before = load_document(manifest["topology"])
        check_states(manifest["states"], self.topology, str(self.directory))
        ports = Ports.from_json(manifest)
        if "egress" not in self.services:
            sinks = (*before.tcp_sinks(), *before.transactional_sinks())
            check_outbox(self.path / "outbox", {ports.parts[sink.path] for sink in sinks})
        self.changes = safe_changes(before, self.topology, str(self.directory), accepts_changed=accepts_changed)
        self._check_drained(before, ports, remote)
        self.ports = kept_ports(before, ports, self.topology)
        self.changed_code = changed_code(manifest["code_hashes"], self.topology)
        if not is_other_program(before, self.topology):
            return
        if self.mode == REALTIME:
            self._former, self._accepts_changed = manifest, accepts_changed
            self.check_left(remote)
        else:
            self._note_batch()

    def _adopt(self, manifest: Mapping[str, Any], remote: RemoteOptions) -> None:
        """Take over what the checkpoint was begun with."""
        _check_mode(manifest, self.mode, self.directory)
        goka = manifest.get("goka", "")
        if self.goka and not goka:
            fix = "leave out --continue-goka, or give a new --checkpoint"
            reason = f"checkpoint {self.directory} was begun without it, and has states and positions of its own"
            raise RunError.of("R788", name=self.topology.name, reason=reason, fix=fix)
        self.goka = goka
        known: dict[str, str] = manifest.get("services", {})
        check_known(self.directory, known, remote)
        self.continues = True
        self.services, self.id = dict(known), manifest.get("id", self.id)
        self.journal = manifest.get("journal", "")
        self.spark = manifest.get("spark", SPARK)
        before, after = manifest.get("rescaled", self.rescaled)
        self.rescaled, self.microbatch = (before, after), tuple(manifest.get("microbatch", ()))
        self.rerun_batches = list(manifest.get("rerun_batches", ()))
        self.topics = {int(port): str(topic) for port, topic in manifest.get("topics", {}).items()}
        self.shuffle_partitions = manifest["shuffle_partitions"]
        self.buckets_per_partition = manifest["buckets_per_partition"]
        if self.goka == PENDING:  # a run that was killed may have left a part of it
            self.directory.remove(self.spark)

    def taken_over(self, batch: int) -> None:
        """Record that what Goka's processors left is in Spark's checkpoint, in a micro-batch that has no output."""
        self.goka, self.rescaled = TAKEN, (-1, batch)
        self._write()

    def _check_files(self) -> None:
        """Check what lies in the directory; what a remote gateway or egress has is checked when they answer."""
        plan = None
        if "egress" not in self.services:
            plan = self._check_spark(Published.of(read_base(self.path / "outbox")))
        if self.journal:
            check_journal(self.path / "journal", self.journal, plan or [])

    def _check_spark(self, published: Published) -> list[Any]:
        """Check Spark's checkpoint; returns the last plan."""
        files = self._spark_files(published)
        plan = files.check()
        self.repairs += files.repairs
        self.repeated = files.repeated()
        return plan

    def _spark_files(self, published: Published) -> SparkFiles:
        whole = bool(published.offsets) or published.batch < 0
        written = read_written(self.path / "written.json").batch
        is_live = self.mode != MICROBATCH or safe_live(self.path / "outbox") > 0
        return SparkFiles(self.directory, self.spark, published, self.rescaled, whole, written, is_live)

    def _check_drained(self, before: Topology, ports: Ports, remote: RemoteOptions) -> None:
        """Refuse changes that need a drain while something is left."""
        changes = draining(before, self.topology)
        if not changes:
            return
        gone = {ports.parts[change.path] for change in changes if "/sinks/" in change.path}
        if left := self._drain(remote).left(gone):
            raise RunError.of("R790", left=f"checkpoint {self.directory}: {left}; {listed(changes)}", other="")

    def _note_batch(self) -> None:
        """Note that a changed program runs a micro-batch again of which something has left.

        A remote egress says later whether it was published: what it does not have is left out then.
        """
        batch = self.repeated
        if "egress" in self.services:
            batch = self._spark_files(Published()).pending()
        elif batch >= 0:
            self.is_ahead = True
            if batch > Published.of(read_base(self.path / "outbox")).batch:
                return  # Spark's sinks have it, and nobody else
        if batch >= 0 and batch not in self.rerun_batches:
            self.rerun_batches.append(batch)

    def _drain(self, remote: RemoteOptions) -> Drain:
        hold = Hold(remote, self.topology.name, self.id, self.services)
        return Drain(self.path, self.directory, self.spark, remote, hold)

    def _make_folders(self) -> None:
        for name in (self.spark, *FOLDERS):
            (self.path / name).mkdir(mode=0o700, exist_ok=True)

    def _write(self) -> None:
        self.directory.write(MANIFEST, sealed(self._manifest()))

    def _manifest(self) -> Mapping[str, Any]:
        topology = self.topology
        return {
            "format_version": FORMAT_VERSION,
            "id": self.id,
            "journal": self.journal,
            "rescaled": list(self.rescaled),
            "name": topology.name,
            "services": self.services,
            "spark": self.spark,
            "interface_hash": interface_hash(topology),
            "code_hashes": {worker.name: worker.code_hash for worker in topology.workers},
            "states": {
                name: {"language": topology.worker(step.worker).language, "class": symbol}
                for name, (step, symbol) in states_of(topology).items()
            },
            "shuffle_partitions": self.shuffle_partitions,
            "buckets_per_partition": self.buckets_per_partition,
            **self.ports.to_json(),
            "topology": topology.document,
            **({"mode": self.mode} if self.mode != MICROBATCH else {}),
            **({"microbatch": list(self.microbatch)} if self.microbatch else {}),
            **({"goka": self.goka} if self.goka else {}),
            **({"rerun_batches": self.rerun_batches} if self.rerun_batches else {}),
            **({"topics": self.topics} if self.topics else {}),
        }


def check_program(directory: Directory, topology: Topology, mode: str, *, accepts_changed: bool = False) -> None:
    """Refuse a program with which `Checkpoint.open` would not go on; the checkpoint may be in use.

    Raises:
        RunError: R603, R605, R615, R757; R698, its record is damaged.
    """
    manifest = find_manifest(directory)
    if manifest is None:
        return
    _check_version(manifest, directory)
    _check_name(manifest, topology, directory)
    _check_mode(manifest, mode, directory)
    check_states(manifest["states"], topology, str(directory))
    safe_changes(load_document(manifest["topology"]), topology, str(directory), accepts_changed=accepts_changed)


def _check_name(manifest: Mapping[str, Any], topology: Topology, directory: Directory) -> None:
    if manifest["name"] != topology.name:
        raise other_application(directory, manifest["name"], topology.name)


def _check_mode(manifest: Mapping[str, Any], mode: str, directory: Directory) -> None:
    if (begun := mode_of(manifest)) != mode:
        raise RunError.of("R757", path=directory, actual=begun, wanted=mode)


def _check_version(manifest: Mapping[str, Any], directory: Directory) -> None:
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        reason = f"format version {version} is not known; this runtime reads version {FORMAT_VERSION}"
        raise RunError.of("R615", path=directory, reason=reason)
