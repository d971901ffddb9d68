"""Makes the model from a document that was found correct."""

from typing import Any

from wallaroo_runtime.topology.check import key_bytes
from wallaroo_runtime.topology.model import (
    Component,
    Framing,
    Key,
    Pipeline,
    Sink,
    Source,
    State,
    Step,
    Topology,
    Worker,
)


def read(document: dict[str, Any]) -> Topology:
    """Return the document as values."""
    workers = tuple(_worker(value) for value in document["workers"])
    pipelines = tuple(map(_pipeline, document["pipelines"]))
    return Topology(document["name"], workers, pipelines, document, document.get("on_error", ""))


def _worker(value: dict[str, Any]) -> Worker:
    lists = {name: tuple(value[name]) for name in ("command", "args")}
    components = tuple(Component(**component) for component in value["components"])
    return Worker(**{**value, **lists, "components": components})


def _pipeline(value: dict[str, Any]) -> Pipeline:
    sources = tuple(Source(**{**source, "framing": Framing(**source["framing"])}) for source in value["sources"])
    sinks = tuple(Sink(**{**sink, "inputs": tuple(sink["inputs"])}) for sink in value["sinks"])
    return Pipeline(value["name"], sources, tuple(map(_step, value["steps"])), sinks)


def _step(value: dict[str, Any]) -> Step:
    state = value.get("state")
    given = {**value, "inputs": tuple(value["inputs"])}
    return Step(**{**given, "state": _state(state)} if state else given)


def _state(value: dict[str, Any]) -> State:
    key = value["key"]
    values = tuple(data for item in key.get("values", ()) if (data := key_bytes(item)) is not None)
    return State(value["name"], value["codec"], Key(key["kind"], values, key.get("unknown", "create")))
