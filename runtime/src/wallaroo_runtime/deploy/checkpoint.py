"""The checkpoint directory of an application: what was run there, and whether this program may go on."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.daemon import replace_file
from wallaroo_runtime.deploy.place import MANIFEST, Place
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.topology.canonical import interface_hash
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Part, Source, Step, Topology

FORMAT_VERSION = 1
MAX_REASONS = 3
FOLDERS = ("spark", "journal", "staging", "outbox", "dead-letters", "logs")


class Checkpoint:
    """A checkpoint directory, opened for one topology.

    Attributes:
        path: The directory.
        shuffle_partitions: As the checkpoint was begun with.
        buckets_per_partition: As the checkpoint was begun with.
        continues: Whether an earlier run of the application was found.
        changed_code: Names of workers whose code hash is not that of the last run.
    """

    def __init__(
        self, place: Place, topology: Topology, *, shuffle_partitions: int, buckets_per_partition: int
    ) -> None:
        """Check what is in the directory against the topology and record the topology.

        Raises:
            RunError: R603, R604, R605 or R615; the directory is as before then.
        """
        self.path = place.path
        self.shuffle_partitions, self.buckets_per_partition = shuffle_partitions, buckets_per_partition
        self.changed_code: list[str] = []
        manifest = self._read()
        self.continues = manifest is not None
        if manifest is not None:
            self._check(manifest, topology)
        for name in FOLDERS:
            (self.path / name).mkdir(mode=0o700, exist_ok=True)
        text = json.dumps(self._manifest(topology), ensure_ascii=False, indent=2) + "\n"
        replace_file(self.path / MANIFEST, text.encode("utf-8"), durable=True)

    def _read(self) -> Mapping[str, Any] | None:
        path = self.path / MANIFEST
        try:
            manifest: Mapping[str, Any] = json.loads(path.read_bytes())
            version = manifest["format_version"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError.of("R616", path=path, reason=f"it is damaged: {error}") from error
        if version != FORMAT_VERSION:
            reason = f"format version {version} is not known; this runtime reads version {FORMAT_VERSION}"
            raise RunError.of("R615", path=self.path, reason=reason)
        return manifest

    def _manifest(self, topology: Topology) -> Mapping[str, Any]:
        return {
            "format_version": FORMAT_VERSION,
            "name": topology.name,
            "interface_hash": interface_hash(topology),
            "code_hashes": {worker.name: worker.code_hash for worker in topology.workers},
            "states": {
                name: {"language": topology.worker(step.worker).language, "class": symbol}
                for name, (step, symbol) in _states(topology).items()
            },
            "shuffle_partitions": self.shuffle_partitions,
            "buckets_per_partition": self.buckets_per_partition,
            "topology": topology.document,
        }

    def _check(self, manifest: Mapping[str, Any], topology: Topology) -> None:
        if manifest["name"] != topology.name:
            raise RunError.of("R603", path=self.path, actual=manifest["name"], expected=topology.name)
        findings = list(_state_findings(manifest["states"], topology, self.path))
        before = load_document(manifest["topology"])
        if not findings and manifest["interface_hash"] != interface_hash(topology):
            reasons = list(changes(before, topology))
            more = [f"and {len(reasons) - MAX_REASONS} more changes"] if len(reasons) > MAX_REASONS else []
            if reasons:
                reason = "; ".join(reasons[:MAX_REASONS] + more)
                findings.append(Diagnostic.of("R615", path=self.path, reason=reason))
        if findings:
            raise RunError(findings)
        self.shuffle_partitions = manifest["shuffle_partitions"]
        self.buckets_per_partition = manifest["buckets_per_partition"]
        known = manifest["code_hashes"]
        self.changed_code = [
            worker.name for worker in topology.workers if known.get(worker.name, worker.code_hash) != worker.code_hash
        ]


def _states(topology: Topology) -> dict[str, tuple[Step, str]]:
    """Return for each state name the first step that has it and the name of its class."""
    found: dict[str, tuple[Step, str]] = {}
    for step in topology.state_steps():
        component = topology.component(step.worker, f"{step.path}/state")
        if step.state is not None:
            found.setdefault(step.state.name, (step, component.symbol if component else ""))
    return found


def _state_findings(known: Mapping[str, Any], topology: Topology, path: Path) -> Iterator[Diagnostic]:
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


def changes(before: Topology, after: Topology) -> Iterator[str]:
    """Say in words what changed that makes journal, shuffled messages or state of `before` unreadable for `after`.

    Names of steps and pipelines, key lists and addresses may change.
    """
    old, new = ({part.path: part for part in topology.parts()} for topology in (before, after))
    for path in [*old, *(path for path in new if path not in old)]:
        if path not in new:
            yield f"{_called(old[path])} is gone"
        elif path not in old:
            yield f"{_called(new[path])} is new"
        else:
            yield from _part_changes(old[path], new[path])


def _called(part: Part) -> str:
    return f'{part.path.split("/")[1][:-1]} "{part.name}" ({part.path})'


def _part_changes(old: Part, new: Part) -> Iterator[str]:
    pairs = [("kind", old.kind, new.kind)]
    if isinstance(old, Source) and isinstance(new, Source):
        pairs.append(("framing", old.framing.kind, new.framing.kind))
    elif not isinstance(old, Source) and not isinstance(new, Source):
        pairs.append(("inputs", ", ".join(old.inputs), ", ".join(new.inputs)))
    if isinstance(old, Step) and isinstance(new, Step) and old.state and new.state:
        pairs.append(("state", old.state.name, new.state.name))
        pairs.append(("kind of key", old.state.key.kind, new.state.key.kind))
    for what, was, now in pairs:
        if was != now:
            yield f"{what} of {_called(new)} was {was} and is {now}"
