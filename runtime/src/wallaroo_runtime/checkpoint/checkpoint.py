"""The checkpoint directory of an application: what was run there, and whether this program may go on."""

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.checkpoint.directory import MANIFEST, SPARK, Place
from wallaroo_runtime.checkpoint.drain import Drain
from wallaroo_runtime.checkpoint.integrity import SparkFiles, check_journal, check_nothing_left
from wallaroo_runtime.checkpoint.manifest import (
    FORMAT_VERSION,
    UNCHECKED_VERSION,
    Directory,
    LocalDirectory,
    sealed,
    unsealed,
)
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.remote import RemoteOptions, check_known, service_names
from wallaroo_runtime.peer.takeover import Hold
from wallaroo_runtime.plan.change import Change, Impact, compare
from wallaroo_runtime.plan.port import Ports, first_ports, kept_ports
from wallaroo_runtime.storage.outbox.check import check_outbox, last_published
from wallaroo_runtime.storage.outbox.log import Published
from wallaroo_runtime.storage.outbox.written import read_written
from wallaroo_runtime.topology.canonical import interface_hash
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Step, Topology

MAX_REASONS = 3
HERE = RemoteOptions()
FOLDERS = ("journal", "staging", "outbox", "dead-letters", "logs")


class Checkpoint:
    """A checkpoint directory, opened for one topology.

    Attributes:
        path: The directory.
        shuffle_partitions: As the checkpoint was begun with.
        wanted_partitions: As many as a new checkpoint would get.
        buckets_per_partition: As the checkpoint was begun with.
        continues: Whether an earlier run of the application was found.
        changed_code: Names of workers whose code hash is not that of the last run.
        changes: What else of the interface changed since then, and was accepted.
        ports: The ports of the topology; what was there before keeps its own.
        id: Random; by it remote gateways and a remote egress know whose data they keep.
        directory: Where its record of the application and Spark's own checkpoint are, if not in `path`.
        spark: Name of Spark's own checkpoint in the directory.
        services: Those of them that the checkpoint was begun with, each with the id of its journal or outbox.
        repairs: What a loss of power had left, and was repaired.
    """

    def __init__(
        self,
        place: Place,
        topology: Topology,
        *,
        shuffle_partitions: int,
        buckets_per_partition: int,
        pin_code: bool = False,
        remote: RemoteOptions = HERE,
        directory: Directory | None = None,
    ) -> None:
        """Check what is in the directory against the topology and record the topology.

        Raises:
            RunError: R603, R604, R605, R615, R623, R650, or with `pin_code` R622; the directory is as before then.
                R612, R619, R620, R631 or R698, a file is damaged or missing, or does not belong to the others.
                R642 or R643 when a remote service must report what it holds.
        """
        self.path = place.path
        self.directory = directory or LocalDirectory(place.path)
        self._pin_code = pin_code
        self.changes: list[Change] = []
        self.ports = first_ports(topology)
        self.shuffle_partitions, self.buckets_per_partition = shuffle_partitions, buckets_per_partition
        self.wanted_partitions = shuffle_partitions
        self.changed_code: list[str] = []
        self.spark = SPARK
        self.repairs: list[Diagnostic] = []
        self._format_version, self._journal, self._rescaled = FORMAT_VERSION, "", (-1, -1)
        manifest = self._read()
        if manifest is None:
            check_nothing_left(self.directory)
        self.continues = manifest is not None
        self.id = secrets.token_hex(16)
        self._remote = remote
        self.services = dict.fromkeys(service_names(remote), "")
        if manifest is not None:
            self._check(manifest, topology)
        for name in (self.spark, *FOLDERS):
            (self.path / name).mkdir(mode=0o700, exist_ok=True)
        self._topology = topology
        self._write()

    def record(self, service: str, store: str) -> None:
        """Record that the checkpoint refers to a journal or outbox from now on."""
        if self.services[service] != store:
            self.services[service] = store
            self._write()

    def record_journal(self, journal: str) -> None:
        """Record which local journal the checkpoint refers to from now on."""
        if self._journal != journal:
            self._journal = journal
            self._write()

    def check_published(self, published: Published) -> None:
        """Compare Spark's checkpoint with the last micro-batch of a remote outbox.

        Raises:
            RunError: R631, they do not belong together.
        """
        self._check_spark(published)

    def _write(self) -> None:
        self.directory.write(MANIFEST, sealed(self._manifest(self._topology)))

    def _check_services(self, manifest: Mapping[str, Any]) -> None:
        known: dict[str, str] = manifest.get("services", {})
        check_known(self.directory, known, self._remote)
        self.services = dict(known)
        self.id = manifest.get("id", self.id)

    def _check_files(self, manifest: Mapping[str, Any]) -> None:
        """Check what lies in the directory; what a remote gateway or egress has is checked when they answer."""
        self._format_version, self._journal = manifest["format_version"], manifest.get("journal", "")
        self.spark = manifest.get("spark", SPARK)
        before, after = manifest.get("rescaled", self._rescaled)
        self._rescaled = (before, after)
        plan = None
        if "egress" not in self.services:
            plan = self._check_spark(Published.of(last_published(self.path / "outbox")))
        if self._journal:
            check_journal(self.path / "journal", self._journal, plan or [])

    def _check_spark(self, published: Published) -> list[Any]:
        """Check Spark's checkpoint; returns the last plan."""
        is_known = bool(published.offsets) or published.batch < 0
        whole = self._format_version != UNCHECKED_VERSION and is_known
        written = read_written(self.path / "written.json").batch
        files = SparkFiles(self.directory, self.spark, published, self._rescaled, whole, written)
        plan = files.check()
        self.repairs += files.repairs
        return plan

    def _read(self) -> Mapping[str, Any] | None:
        try:
            content = self.directory.read(MANIFEST)
            if content is None:
                return None
            manifest: Mapping[str, Any] = unsealed(content)
            version = manifest["format_version"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            path = f"{self.directory}/{MANIFEST}"
            raise RunError.of("R698", path=path, reason=error) from error
        if version not in (FORMAT_VERSION, UNCHECKED_VERSION):
            reason = f"format version {version} is not known; this runtime reads version {FORMAT_VERSION}"
            raise RunError.of("R615", path=self.directory, reason=reason)
        return manifest

    def _manifest(self, topology: Topology) -> Mapping[str, Any]:
        return {
            "format_version": self._format_version,
            "id": self.id,
            "journal": self._journal,
            "rescaled": list(self._rescaled),
            "name": topology.name,
            "services": self.services,
            "spark": self.spark,
            "interface_hash": interface_hash(topology),
            "code_hashes": {worker.name: worker.code_hash for worker in topology.workers},
            "states": {
                name: {"language": topology.worker(step.worker).language, "class": symbol}
                for name, (step, symbol) in _states(topology).items()
            },
            "shuffle_partitions": self.shuffle_partitions,
            "buckets_per_partition": self.buckets_per_partition,
            **self.ports.to_json(),
            "topology": topology.document,
        }

    def _check(self, manifest: Mapping[str, Any], topology: Topology) -> None:
        if manifest["name"] != topology.name:
            raise RunError.of("R603", path=self.directory, actual=manifest["name"], expected=topology.name)
        self._check_services(manifest)
        self._check_files(manifest)
        findings = list(_state_findings(manifest["states"], topology, str(self.directory)))
        before = load_document(manifest["topology"])
        if findings:
            raise RunError(findings)
        ports = Ports.from_json(manifest, before)
        if "egress" not in self.services:
            sinks = {ports.parts[sink.path] for sink in before.egress_sinks()}
            check_outbox(self.path / "outbox", sinks)
        self._check_changes(before, ports, topology)
        self.ports = kept_ports(before, ports, topology)
        self.shuffle_partitions = manifest["shuffle_partitions"]
        self.buckets_per_partition = manifest["buckets_per_partition"]
        known = manifest["code_hashes"]
        self.changed_code = [
            worker.name for worker in topology.workers if known.get(worker.name, worker.code_hash) != worker.code_hash
        ]
        if self._pin_code and self.changed_code:
            workers = [topology.worker(name) for name in self.changed_code]
            raise RunError(
                Diagnostic.of(
                    "R622",
                    path=self.directory,
                    worker=worker.name,
                    actual=worker.code_hash,
                    expected=known[worker.name],
                )
                for worker in workers
            )

    def _check_changes(self, before: Topology, ports: Ports, topology: Topology) -> None:
        """Accept what is safe, and what needs a drain when all is done; refuse the rest with every reason."""
        changes = compare(before, topology)
        breaking = [change.text for change in changes if change.impact is Impact.BREAKS_STATE]
        if breaking:
            raise RunError.of("R615", path=self.directory, reason=_listed(breaking))
        draining = [change for change in changes if change.impact is Impact.NEEDS_DRAIN]
        if draining:
            gone = {ports.parts[change.path] for change in draining if "/sinks/" in change.path}
            hold = Hold(self._remote, before.name, self.id, self.services)
            drain = Drain(self.path, self.directory, self.spark, self._remote, hold)
            if left := drain.left(gone):
                raise RunError.of(
                    "R623", path=self.directory, left=left, reason=_listed([each.text for each in draining])
                )
        self.changes = [change for change in changes if change.is_interface]


def _listed(reasons: list[str]) -> str:
    more = [f"and {len(reasons) - MAX_REASONS} more changes"] if len(reasons) > MAX_REASONS else []
    return "; ".join(reasons[:MAX_REASONS] + more)


def _states(topology: Topology) -> dict[str, tuple[Step, str]]:
    """Return for each state name the first step that has it and the name of its class."""
    found: dict[str, tuple[Step, str]] = {}
    for step in topology.state_steps():
        component = topology.component(step.worker, f"{step.path}/state")
        if step.state is not None:
            found.setdefault(step.state.name, (step, component.symbol if component else ""))
    return found


def _state_findings(known: Mapping[str, Any], topology: Topology, path: str) -> Iterator[Diagnostic]:
    languages: set[tuple[str, str]] = set()
    for name, (step, symbol) in _states(topology).items():
        before = known.get(name)
        if before is None:
            continue
        language = topology.worker(step.worker).language
        if before["language"] != language:
            if (before["language"], language) not in languages:
                yield Diagnostic.of("R604", path=path, actual=before["language"], expected=language)
            languages.add((before["language"], language))
        elif before["class"] != symbol:
            component = topology.component(step.worker, f"{step.path}/state")
            place = {"file": component.file, "line": component.line} if component else {}
            values: dict[str, Any] = {"state": name, "actual": before["class"], "expected": symbol, **place}
            yield Diagnostic.of("R605", path=path, **values)
