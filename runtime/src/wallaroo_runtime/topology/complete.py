"""Completes a topology that a person has written: section 1 of the specification, "Partial documents"."""

from collections.abc import Iterator, Mapping
from typing import Any

from wallaroo_runtime.topology.canonical import interface_hash, meant
from wallaroo_runtime.topology.index import items_of
from wallaroo_runtime.topology.load import load_document, parse
from wallaroo_runtime.topology.model import STATE_KINDS, Topology
from wallaroo_runtime.topology.schema import resolved, schema

Json = dict[str, Any]
MAIN = "main"
NO_HASH = "sha256:" + "0" * 64
GIVE_TIME = ("kafka", "connector")


def complete(data: bytes, directory: str, version: str) -> Topology:
    """Add the missing parts of a partial document, and check the result.

    Args:
        data: The document. Its properties are kept, except for the interface hash.
        directory: Directory of the workers for which the document names none.
        version: SDK version of the workers for which the document names none.

    Returns:
        The topology, with the interface hash that workers must have.

    Raises:
        RunError: The document is wrong, or a missing part cannot be added. Has every finding, sorted by pointer.
    """
    document = parse(data)
    if isinstance(document, dict):
        _fill_workers(document, directory, version)
        _fill_pipelines(document)
        document = _with_defaults(document, schema())
    topology = load_document(document)
    for worker in document["workers"]:
        if not topology.is_library(worker["name"]):
            worker["interface_hash"] = interface_hash(topology)
    return load_document(document)


def _fill_workers(document: Json, directory: str, version: str) -> None:
    workers = list(_objects(document, "workers"))
    if len(workers) == 1:
        workers[0].setdefault("name", MAIN)
    libraries = [step.get("worker") for line in _objects(document, "pipelines") for step in _objects(line, "steps")
                 if "component" in step]  # fmt: skip
    for worker in workers:
        worker.setdefault("directory", directory)
        worker.setdefault("sdk_version", version)
        # A library offers more components than this document uses, so only its program can compute the hash.
        if worker.get("name") not in libraries:
            worker.setdefault("interface_hash", NO_HASH)


def _fill_pipelines(document: Json) -> None:
    names = [worker.get("name") for worker in _objects(document, "workers")]
    # If a worker has no name, report that, and not each part that names no worker.
    is_whole = bool(names) and all(isinstance(name, str) for name in names)
    own = names[0] if len(names) == 1 and is_whole else MAIN if MAIN in names or not is_whole else None
    pipelines = list(_objects(document, "pipelines"))
    for number, pipeline in enumerate(pipelines):
        if len(pipelines) == 1:
            pipeline.setdefault("name", _named(document, str(number)))
        _Line(pipeline, number, own).fill()
    steps = [step for pipeline in pipelines for step in _objects(pipeline, "steps")]
    _fill_states([step for step in steps if step.get("kind") in tuple(STATE_KINDS)])
    _fill_times(pipelines)


class _Line:
    """Completes one pipeline: a part without inputs reads the part before it."""

    def __init__(self, pipeline: Json, number: int, own: Any) -> None:
        self.pipeline, self.number, self.own = pipeline, number, own
        self.before: Json = {}
        self.place = ""  # path of the previous part

    def fill(self) -> None:
        sources = list(self._parts("sources"))
        for place, source in sources:
            source.setdefault("name", _named(self.pipeline, place))
            _add(source, "worker", self.own)
        # With several sources, the first step must name its inputs.
        self.place, self.before = sources[0] if len(sources) == 1 else ("", {})
        for place, step in self._parts("steps"):
            self._reads(step)
            self._step(place, step)
        for place, sink in self._parts("sinks"):
            self._reads(sink)
            sink.setdefault("name", _named(self.pipeline, place))
            _add(sink, "worker", self.own)

    def _step(self, place: str, step: Json) -> None:
        if step.get("kind") == "output":
            if step.get("inputs") == [self.place]:
                _add(step, "worker", self.before.get("worker"))
                _add(step, "component", self.before.get("component"))
            return
        if step.get("kind") == "collect":
            step.setdefault("name", "collect")
        _add(step, "worker", self.own)
        self.place, self.before = place, step

    def _reads(self, part: Json) -> None:
        if self.before:
            part.setdefault("inputs", [self.place])

    def _parts(self, kind: str) -> Iterator[tuple[str, Json]]:
        for at, part in enumerate(items_of(self.pipeline, kind)):
            if isinstance(part, dict):
                place = f"{self.number}/{kind}/{at}"
                part.setdefault("path", place)
                yield place, part


def _fill_states(steps: list[Json]) -> None:
    """Give each state step without a declared state a separate state, named after the step."""
    for step in steps:
        step.setdefault("state", {})
    states = [(step, step["state"]) for step in steps if isinstance(step["state"], dict)]
    taken = {state["name"] for _, state in states if isinstance(state.get("name"), str)}
    for step, state in states:
        if "name" not in state:
            number, own = 1, _named(step, str(step.get("path")))
            name = own
            while name in taken:
                number += 1
                name = f"{own} {number}"
            state["name"] = name
            taken.add(name)


def _fill_times(pipelines: list[Json]) -> None:
    """Set `time` of windows and timed steps: `event` if all of their sources give times, else `ingest`.

    Timed steps that share a state have the same kind of time.
    """
    times: dict[str, bool] = {}
    timed: list[Json] = []
    for pipeline in pipelines:
        for source in _objects(pipeline, "sources"):
            times[str(source["path"])] = source.get("kind") in GIVE_TIME or "timestamp" in source
        for step in _objects(pipeline, "steps"):
            inputs = [path for path in items_of(step, "inputs") if isinstance(path, str)]
            has_time = bool(inputs) and all(times.get(path, False) for path in inputs)
            times[str(step["path"])] = has_time
            window = step.get("window")
            if isinstance(window, dict) and window.get("kind") in ("range", "session"):
                window.setdefault("time", "event" if has_time else "ingest")
            if isinstance(window, dict) and window.get("kind") == "range":
                _add(window, "slide_ms", window.get("range_ms"))
            if isinstance(step.get("state"), dict) and ("timers" in step or "ttl_ms" in step["state"]):
                timed.append(step)
    for step in timed:
        sharing = [other for other in timed if other["state"].get("name") == step["state"].get("name")]
        has_time = all(times[str(other["path"])] for other in sharing)
        step.setdefault("time", "event" if has_time else "ingest")


def _with_defaults(value: Any, rule: Mapping[str, Any]) -> Any:
    """Return a part of a document with the schema's defaults for its missing properties."""
    rule = resolved(rule)
    if isinstance(value, list):
        return [_with_defaults(item, rule.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    properties = meant(value, rule).get("properties", {})
    defaults = {name: each["default"] for name, each in properties.items() if "default" in each}
    return {name: _with_defaults(each, properties.get(name, {})) for name, each in {**defaults, **value}.items()}


def _named(owner: Mapping[str, Any], place: str) -> str:
    """Return the name of a pipeline or part, or `place` if it has no valid name, to make missing names from it."""
    name = owner.get("name")
    return name if isinstance(name, str) else place


def _add(part: Json, name: str, value: Any) -> None:
    if value is not None:
        part.setdefault(name, value)


def _objects(value: Json, name: str) -> Iterator[Json]:
    return (item for item in items_of(value, name) if isinstance(item, dict))
