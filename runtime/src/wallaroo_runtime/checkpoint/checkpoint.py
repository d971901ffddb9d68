"""Opens the checkpoint of an application for a run: checks that its program may continue, and records the program."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
)
from wallaroo_runtime.checkpoint.drain import Drain, waiting_ports
from wallaroo_runtime.checkpoint.integrity import SparkFiles, check_journal, check_nothing_left
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import (
    MICROBATCH,
    PENDING,
    TAKEN,
    Manifest,
    find_manifest,
    other_application,
    write_manifest,
)
from wallaroo_runtime.checkpoint.uncommitted import refused
from wallaroo_runtime.durable.directory import Directory, LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.remote import RemoteOptions, check_known, service_names
from wallaroo_runtime.plan.change import Change
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.plan.port import Ports, first_ports, kept_ports
from wallaroo_runtime.storage.outbox.check import check_outbox
from wallaroo_runtime.storage.outbox.live_state import safe_live
from wallaroo_runtime.storage.outbox.log import Published, read_base
from wallaroo_runtime.storage.record_count import read_counted
from wallaroo_runtime.topology.model import Topology

HERE = RemoteOptions()
FOLDERS = ("journal", "staging", "outbox", "dead-letters", "logs")


@dataclass(slots=True)
class Checkpoint:
    """A checkpoint directory that `open` has opened for a run of one topology.

    Attributes:
        path: The directory on this machine.
        directory: The directory of the record (`application.json`) and of Spark's own checkpoint. It may be remote.
        topology: The topology to run.
        manifest: The record of the checkpoint.
        continues: Whether the application has run with this checkpoint before.
        changed_code: Names of workers whose code hash has changed since the last run.
        changes: Accepted changes since the last run: of the interface (steps, sources, sinks and codecs), of states, or
            of the start of workers.
        is_ahead: Whether output of a micro-batch was sent that Spark has not committed, and the program has changed
            since then.
        accepted: In real-time mode, the messages that a changed program processes again although their results were
            sent, because the user accepted it (`--accept-changed`).
        repeated: Number of the micro-batch whose output was sent, but which Spark has not committed; -1 if there is
            none.
        repairs: Findings (R632) about files that a loss of power had damaged, and that were repaired.
    """

    path: Path
    directory: Directory
    topology: Topology
    manifest: Manifest
    continues: bool = False
    changed_code: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    is_ahead: bool = False
    accepted: range = range(0)
    repeated: int = -1
    repairs: list[Diagnostic] = field(default_factory=list)
    _former: Manifest | None = None  # in real-time mode, the record before a changed program replaced it
    _accepts_changed: bool = False

    @classmethod
    def open(
        cls,
        held: HeldDirectory,
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
        """Check that a topology may run with the content of a directory, and record the topology.

        Args:
            held: The locked directory.
            topology: The topology to run.
            shuffle_partitions: Number of shuffle partitions of a new checkpoint.
            buckets_per_partition: Number of buckets per partition of a new checkpoint.
            remote: The remote gateways and egress.
            directory: The directory of the record and of Spark's own checkpoint, if it is not `held`.
            mode: The mode in which Spark shall run the application.
            continues_goka: Whether a new checkpoint begins with the tables and offsets of Goka's processors.
            accepts_changed: Whether a changed program may lose fields of states, and may process messages again
                although their results were sent (`--accept-changed`).

        Raises:
            RunError: R757 if the checkpoint was begun in the other mode, R788 if it was begun without data of Goka's
                processors. R603, R605, R615 or R790 if the program may not continue; then the directory is unchanged.
                R698 if a file is damaged or missing, or belongs to another checkpoint. R642 or R643 if a remote service
                must report its data, but does not answer or has the data of another checkpoint.
        """
        directory = directory or LocalDirectory(held.path)
        begun = Manifest(
            topology=topology.document,
            shuffle_partitions=shuffle_partitions,
            buckets_per_partition=buckets_per_partition,
            ports=first_ports(topology),
            id=secrets.token_hex(16),
            services=dict.fromkeys(service_names(remote), ""),
            mode=mode,
            goka=PENDING if continues_goka else "",
        )
        former = find_manifest(directory)
        opened = cls(held.path, directory, topology, former or begun, _accepts_changed=accepts_changed)
        if former is None:
            check_nothing_left(directory)
        else:
            _check_begun(former, begun, directory)
            opened._continue(former, remote)
        opened._make_folders()
        write_manifest(directory, opened.manifest)
        return opened

    def _change(self, **fields: Any) -> None:
        """Change fields of the checkpoint's record (`application.json`), and write the record."""
        changed = replace(self.manifest, **fields)
        if changed != self.manifest:
            self.manifest = changed
            write_manifest(self.directory, changed)

    def record(self, service: str, store: str) -> None:
        """Record the id of a remote service's journal or outbox, so that later runs accept no other."""
        self._change(services={**self.manifest.services, service: store})

    def record_journal(self, journal: str) -> None:
        """Record the id of the local journal, so that later runs accept no other."""
        self._change(journal=journal)

    @property
    def topic_ids(self) -> dict[str, str]:
        """The ids of the topics that were read, by the path of their Kafka source. Unknown ids are left out."""
        topics = self.manifest.topics
        return {path: topics[port] for path, port in self.manifest.ports.parts.items() if port in topics}

    def record_topics(self, ids: Mapping[str, str]) -> None:
        """Record the ids of the topics that are read now, by the path of their source. Leave out empty ids."""
        topics = {self.manifest.ports.parts[path]: topic for path, topic in ids.items() if topic}
        self._change(topics={**self.manifest.topics, **topics})

    def plan(self) -> Plan:
        """Compile the topology with the ports and the numbers of partitions and buckets of the checkpoint."""
        return self.manifest.plan(self.topology)

    def check_published(self, published: Published) -> None:
        """Check that Spark's checkpoint fits the last micro-batch that a remote egress has published.

        Raises:
            RunError: R698 if they do not belong together.
        """
        self._check_spark(published)
        self._change(rerun_batches=tuple(each for each in self.manifest.rerun_batches if each <= published.batch))

    def check_repeated(self, remote: RemoteOptions, *, is_attached: bool = False) -> None:
        """Refuse a changed program in real-time mode if the last run has sent results of uncommitted input.

        Args:
            remote: The remote gateways and egress.
            is_attached: Whether the remote services already serve this process. Before that, a driver on another
                machine may still send results.

        Raises:
            RunError: R790 if there are such results; then the record of the former program is written again. Also the
                errors of `Drain.repeated`.
        """
        if self._former is None:
            return
        repeated = Drain.of(self.path, self.manifest, self.directory, remote).repeated(is_attached=is_attached)
        if repeated and not self._accepts_changed:
            write_manifest(self.directory, self._former)
            raise refused(repeated)
        self.accepted = repeated

    def _continue(self, former: Manifest, remote: RemoteOptions) -> None:
        """Prepare to continue where the last run ended. Refuse changes of the program that are not safe."""
        check_known(self.directory, former.services, remote)
        self.continues = True
        if former.goka == PENDING:  # a killed run may have left a part of the first states
            self.directory.remove(former.spark)
        self._check_files()
        before, ports, checkpoint = former.load(), former.ports, str(self.directory)
        check_states(before, self.topology, checkpoint)
        if not self._has_remote_egress:
            sinks = (*before.tcp_sinks(), *before.kafka_sinks())
            check_outbox(self.path / "outbox", {ports.parts[sink.path] for sink in sinks})
        self.changes = safe_changes(before, self.topology, checkpoint, accepts_changed=self._accepts_changed)
        kept = kept_ports(before, ports, self.topology)
        self._check_drained(before, kept, remote)
        self.manifest = replace(former, topology=self.topology.document, ports=kept)
        self.changed_code = changed_code(before, self.topology)
        if not is_other_program(before, self.topology):
            return
        if former.is_realtime:
            self._former = former
            self.check_repeated(remote)
        else:
            self._note_batch()

    @property
    def _has_remote_egress(self) -> bool:
        return "egress" in self.manifest.services

    def record_taken_over(self, batch: int) -> None:
        """Record that micro-batch `batch` has stored the tables of a Goka program as states. It has no output."""
        self._change(goka=TAKEN, rescaled=(-1, batch))

    def _check_files(self) -> None:
        """Check that the files of Spark, outbox and journal belong together. Remote services are checked later."""
        plan = None
        if not self._has_remote_egress:
            plan = self._check_spark(Published.of(read_base(self.path / "outbox")))
        if journal := self.manifest.journal:
            check_journal(self.path / "journal", journal, plan or [])

    def _check_spark(self, published: Published) -> list[Any]:
        """Check that Spark's checkpoint fits the outbox. Return the offsets at which its last planned batch ends."""
        files = self._spark_files(published)
        plan = files.check()
        self.repairs += files.repairs
        self.repeated = files.repeated()
        return plan

    def _spark_files(self, published: Published) -> SparkFiles:
        """Return the files of Spark's checkpoint, to compare them with the last published micro-batch."""
        whole = bool(published.offsets) or published.batch < 0
        written = read_counted(self.directory).written
        is_live = self.manifest.is_realtime or safe_live(self.path / "outbox") > 0
        spark, rescaled = self.manifest.spark, self.manifest.rescaled
        return SparkFiles(self.directory, spark, published, rescaled, whole, written, is_live)

    def _check_drained(self, before: Topology, kept: Ports, remote: RemoteOptions) -> None:
        """Refuse changes that need a drain (all input processed, all output delivered) while work is unfinished."""
        changes = draining(before, self.topology)
        if not changes:
            return
        drain = Drain.of(self.path, self.manifest, self.directory, remote)
        if left := drain.left(waiting_ports(changes, self.manifest.ports, kept)):
            raise RunError.of("R790", left=f"checkpoint {self.directory}: {left}; {listed(changes)}", other="")

    def _note_batch(self) -> None:
        """Note in the record (`application.json`) that a changed program repeats a micro-batch whose output was sent.

        A remote egress reports later whether it has published the micro-batch. If not, `check_published` removes the
        note.
        """
        batch = self.repeated
        if self._has_remote_egress:
            batch = self._spark_files(Published()).pending()
        elif batch >= 0:
            self.is_ahead = True
            if batch > Published.of(read_base(self.path / "outbox")).batch:
                return  # only Spark's sinks have its output
        known = self.manifest.rerun_batches
        if batch >= 0 and batch not in known:
            self.manifest = replace(self.manifest, rerun_batches=(*known, batch))

    def _make_folders(self) -> None:
        for name in (self.manifest.spark, *FOLDERS):
            (self.path / name).mkdir(mode=0o700, exist_ok=True)


def check_program(directory: Directory, topology: Topology, mode: str, *, accepts_changed: bool = False) -> None:
    """Refuse a program that `Checkpoint.open` would refuse. The checkpoint may be in use.

    Raises:
        RunError: R603, R605, R615 or R757 if the program may not continue, R698 if the record is damaged.
    """
    if (manifest := find_manifest(directory)) is None:
        return
    _check_name_and_mode(manifest, topology.name, mode, directory)
    before = manifest.load()
    check_states(before, topology, str(directory))
    safe_changes(before, topology, str(directory), accepts_changed=accepts_changed)


def _check_begun(former: Manifest, begun: Manifest, directory: Directory) -> None:
    """Refuse a run that needs a new checkpoint: name or mode differ, or it would take over tables of Goka.

    Args:
        former: The record of the existing checkpoint.
        begun: The record that a new checkpoint would have.
    """
    _check_name_and_mode(former, begun.name, begun.mode, directory)
    if begun.goka and not former.goka:
        fix = "leave out --continue-goka, or give a new --checkpoint"
        reason = f"checkpoint {directory} was begun without --continue-goka, and has its own states and positions"
        raise RunError.of("R788", name=begun.name, reason=reason, fix=fix)


def _check_name_and_mode(manifest: Manifest, name: str, mode: str, directory: Directory) -> None:
    if manifest.name != name:
        raise other_application(directory, manifest.name, name)
    if manifest.mode != mode:
        raise RunError.of("R757", path=directory, actual=manifest.mode, wanted=mode)
