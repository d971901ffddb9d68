"""Converts a correct document to the values of the model."""

from typing import Any

from wallaroo_runtime.topology.check import key_bytes
from wallaroo_runtime.topology.model import (
    ConnectorSink,
    ConnectorSource,
    Framing,
    GeneratorSource,
    KafkaSink,
    KafkaSource,
    Key,
    Pipeline,
    Sink,
    Source,
    SparkSink,
    SparkSource,
    State,
    Step,
    TcpSink,
    TcpSource,
    Topology,
    Window,
)
from wallaroo_runtime.topology.topic import TopicCreation
from wallaroo_runtime.topology.worker import Component, Worker

_SOURCES: dict[str, type[Source]] = {
    "tcp": TcpSource,
    "connector": ConnectorSource,
    "generator": GeneratorSource,
    "kafka": KafkaSource,
    "spark": SparkSource,
}
_SINKS: dict[str, type[Sink]] = {"tcp": TcpSink, "connector": ConnectorSink, "kafka": KafkaSink, "spark": SparkSink}


def read(document: dict[str, Any]) -> Topology:
    """Convert a correct document to a `Topology`."""
    workers = tuple(_worker(value) for value in document["workers"])
    pipelines = tuple(map(_pipeline, document["pipelines"]))
    return Topology(document["name"], workers, pipelines, document, document.get("on_error", ""))


def _worker(value: dict[str, Any]) -> Worker:
    lists = {name: tuple(value[name]) for name in ("command", "args")}
    components = tuple(Component(**component) for component in value["components"])
    return Worker(**{**value, **lists, "components": components})


def _pipeline(value: dict[str, Any]) -> Pipeline:
    sources, steps, sinks = map(_source, value["sources"]), map(_step, value["steps"]), map(_sink, value["sinks"])
    return Pipeline(value["name"], tuple(sources), tuple(steps), tuple(sinks))


def _source(value: dict[str, Any]) -> Source:
    fields = dict(value)
    if "framing" in value:
        fields["framing"] = Framing(**value["framing"])
    if "brokers" in value:
        fields["brokers"] = tuple(value["brokers"])
    if "partitions" in value:
        partitions = ((item["number"], item.get("start", value["start"])) for item in value["partitions"])
        fields["partitions"] = tuple(partitions)
    if "create" in value:
        fields["create"] = TopicCreation(**value["create"])
    return _SOURCES[value["kind"]](**fields)


def _sink(value: dict[str, Any]) -> Sink:
    fields = dict(value)
    fields.update((name, tuple(value[name])) for name in ("inputs", "brokers") if name in value)
    if "create" in value:
        fields["create"] = TopicCreation(**value["create"])
    return _SINKS[value["kind"]](**fields)


def _step(value: dict[str, Any]) -> Step:
    fields = dict(value)
    fields.update((name, tuple(value[name])) for name in ("inputs", "visits", "timers") if name in value)
    if "state" in value:
        fields["state"] = _state(value["state"])
    if "window" in value:
        fields["window"] = Window(**value["window"])
    return Step(**fields)


def _state(value: dict[str, Any]) -> State:
    key = value["key"]
    values = tuple(data for item in key.get("values", ()) if (data := key_bytes(item)) is not None)
    keys = Key(key["kind"], values, key.get("unknown", "create"))
    return State(value["name"], value["codec"], keys, value.get("ttl_ms", 0))
