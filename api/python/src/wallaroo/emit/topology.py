"""Writes an application as the topology document, and computes its hashes."""

import hashlib
import json
import os
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from wallaroo.component.application import Application, Component, Pipeline, Sink, Source, State, Step
from wallaroo.declare.library import Library
from wallaroo.diagnostic.location import relative
from wallaroo.emit.state_shape import state_shape
from wallaroo.message.handshake import PROTOCOL_VERSION
from wallaroo.message.key import key_json
from wallaroo.message.serialization import Serializer

TOPOLOGY_VERSION = 1
SDK_VERSION = "0.1.0"
WORKER = "main"
CODEC = "native"
ADDRESS = ("host", "port", "cookie", "brokers", "options")
CALL_DEADLINE_MS = 60_000


def canonical(document: Mapping[str, Any]) -> str:
    r"""Return a document as indented JSON, the same text in each language. Its keys must be in schema order already.

    Example:
        >>> canonical({"name": "a\u2028b", "sinks": []})
        '{\n  "name": "a\u2028b",\n  "sinks": []\n}\n'
    """
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def interface_hash(document: Mapping[str, Any]) -> str:
    """Return the hash of a document without `workers` and addresses, to recognize the topology of a program."""
    pipelines = [
        pipeline | {part: [_without_address(item) for item in pipeline[part]] for part in ("sources", "sinks")}
        for pipeline in document["pipelines"]
    ]
    names = ("topology_version", "name", "on_error")
    subject = {name: document[name] for name in names if name in document} | {"pipelines": pipelines}
    return "sha256:" + hashlib.sha256(canonical(subject).encode()).hexdigest()


def topology(application: Application, directory: str, program: str, args: Sequence[str]) -> dict[str, Any]:
    """Return the topology document of an application.

    Args:
        application: The application that the program's setup returned.
        directory: The program's directory. File names are relative to it, and its source files are hashed.
        program: Name of the program, as the user wrote it.
        args: The application's command line, without the program's name.
    """
    document: dict[str, Any] = {
        "topology_version": TOPOLOGY_VERSION,
        "name": application.name,
        **_policy(application),
        "workers": [],
        "pipelines": [_pipeline(pipeline) for pipeline in application.pipelines],
    }
    shapes = _shapes(application, directory)
    components = [_component(component, directory, shapes) for component in _ordered(application)]
    document["workers"].append(_worker(interface_hash(document), components, directory, program, args))
    return document


def library_document(library: Library, directory: str, program: str, args: Sequence[str]) -> dict[str, Any]:
    """Return the document of a library: its worker and its offers. Arguments are as for `topology`."""
    offers = [library.offers[name] for name in sorted(library.offers)]
    subject = {"components": [offer.to_json() for offer in offers]}
    digest = "sha256:" + hashlib.sha256(canonical(subject).encode()).hexdigest()
    components, is_own = [], _is_own(directory)
    for offer in offers:
        shape = _shape(offer.step, Serializer(), is_own)
        place = _component(Component("", offer.symbol, offer.location), directory, {"": shape})
        components.append(offer.to_json() | {name: place[name] for name in place if name != "path"})
    return {"workers": [_worker(digest, [], directory, program, args)], "components": components}


def _worker(
    interface: str, components: list[dict[str, Any]], directory: str, program: str, args: Sequence[str]
) -> dict[str, Any]:
    return {
        "name": WORKER,
        "language": "python",
        "sdk_version": SDK_VERSION,
        "protocol_version": PROTOCOL_VERSION,
        "command": ["{python}", "-m", "wallaroo.worker", program],
        "directory": os.getcwd(),
        "args": list(args),
        "call_deadline_ms": CALL_DEADLINE_MS,
        "interface_hash": interface,
        "code_hash": code_hash(directory),
        "components": components,
    }


def code_hash(directory: str) -> str:
    """Return the hash of the program's source files: the modules that were loaded from its directory."""
    files, real = {}, os.path.realpath(directory)
    for module in list(sys.modules.values()):
        if (place := source_place(getattr(module, "__file__", None), real)) is not None:
            files[place[0]] = place[1]
    digest = hashlib.sha256()
    for name in sorted(files):
        with open(files[name], "rb") as source:
            digest.update(name.encode() + b"\0" + hashlib.sha256(source.read()).digest())
    return "sha256:" + digest.hexdigest()


def source_place(file: object, directory: str) -> tuple[str, str] | None:
    """Return a module's file below the program's directory, and its full path; None for a module from another place."""
    installed = _installed()
    # Installed modules are excluded first, because resolving the paths of hundreds of modules is slow.
    if not isinstance(file, str) or not file.endswith(".py") or file.startswith(installed):
        return None
    real, below = _real(file), os.path.join(directory, "")
    name = real[len(below) :].replace(os.sep, "/")
    is_ours = real.startswith(below) and not real.startswith(installed) and "site-packages" not in name.split("/")
    return (name, real) if is_ours else None


@cache
def _real(file: str) -> str:
    """Return the resolved path of a file. It is cached, because each application looks up hundreds of modules."""
    return os.path.realpath(file)


@cache
def _installed() -> tuple[str, ...]:
    sdk = os.path.dirname(os.path.dirname(__file__))
    places = [*(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")), sdk]
    return tuple({place + os.sep for each in places for place in (each, os.path.realpath(each))})


def _without_address(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ADDRESS}


def _pipeline(pipeline: Pipeline) -> dict[str, Any]:
    return {
        "name": pipeline.name,
        "sources": [_source(source) for source in pipeline.sources],
        "steps": [_step(step) for step in pipeline.steps],
        "sinks": [_sink(sink) for sink in pipeline.sinks],
    }


def _source(source: Source) -> dict[str, Any]:
    item = {"path": source.path, "name": source.name, "kind": source.kind, **source.fields}
    return item | {"codec": source.codec, "worker": WORKER} | _policy(source)


def _step(step: Step) -> dict[str, Any]:
    item: dict[str, Any] = {"path": step.path, "name": step.name, "kind": step.kind, "inputs": list(step.inputs)}
    if step.state is not None:
        ttl = {"ttl_ms": step.state.ttl_ms} if step.state.ttl_ms else {}
        item["state"] = {"name": step.state.name, **ttl, "codec": CODEC, "key": _key(step.state)}
    if step.window is not None:
        item["window"] = step.window
    if step.visits:
        item["visits"] = list(step.visits)
    if step.timers:
        item["timers"] = list(step.timers)
    if step.time:
        item["time"] = step.time
    host = {"worker": WORKER} if step.remote is None else {"worker": step.remote.worker, "component": step.remote.name}
    return item | {"codec": step.codec} | host | _policy(step)


def _key(state: State) -> dict[str, Any]:
    if state.is_by_message:
        return {"kind": "message"}
    if state.partition is None:
        return {"kind": "single"}
    return {"kind": "partition", "values": list(map(key_json, state.keys)), "unknown": state.unknown}


def _sink(sink: Sink) -> dict[str, Any]:
    item = {"path": sink.path, "name": sink.name, "kind": sink.kind, **sink.fields}
    return item | {"inputs": list(sink.inputs), "worker": WORKER} | _policy(sink)


def _policy(part: Application | Source | Step | Sink) -> dict[str, str]:
    return {"on_error": part.on_error} if part.on_error else {}


def _ordered(application: Application) -> list[Component]:
    order = {node.path: number for number, node in enumerate(application.nodes())}
    parts = ("", "partition", "state")

    def position(component: Component) -> tuple[int, int]:
        base = "/".join(component.path.split("/")[:3])
        return order[base], parts.index(component.path[len(base) :].strip("/"))

    return sorted(application.components, key=position)


def _shapes(application: Application, directory: str) -> dict[str, dict[str, str] | None]:
    """Return the shape (types of the fields) of each state, by the path of the component that makes the state."""
    steps = [step for pipeline in application.pipelines for step in pipeline.steps if step.state is not None]
    places = {component.path for component in application.components}
    is_own = _is_own(directory)
    return {
        path: _shape(step, application.serializer, is_own)
        for step in steps
        for path in (f"{step.path}/state", step.path)
        if path in places and (path != step.path or f"{path}/state" not in places)
    }


def _is_own(directory: str) -> Callable[[str], bool]:
    """Return a function from the name of a module to a bool: whether the module is a part of the program."""
    real = os.path.realpath(directory)

    @cache
    def is_own(module: str) -> bool:
        return source_place(getattr(sys.modules.get(module), "__file__", None), real) is not None

    return is_own


def _shape(step: Step, serializer: Serializer, is_own: Callable[[str], bool]) -> dict[str, str] | None:
    if step.state is None or step.remote is not None:
        return None
    state = step.state
    maker = step.aggregation.initial_accumulator if step.aggregation is not None else state.builder
    if state.shape is not None:
        return dict(state.shape)
    return state_shape(maker, serializer, is_own)


def _component(component: Component, directory: str, shapes: Mapping[str, dict[str, str] | None]) -> dict[str, Any]:
    item: dict[str, Any] = {"path": component.path, "symbol": component.symbol}
    if component.location.file:
        item["file"] = relative(component.location.file, directory)
    if component.location.line:
        item["line"] = component.location.line
    if (shape := shapes.get(component.path)) is not None:
        item["shape"] = shape
    return item
