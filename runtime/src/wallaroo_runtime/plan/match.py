"""Matches the parts (sources, steps and sinks) of two versions of an application."""

from collections import defaultdict
from collections.abc import Iterator

from wallaroo_runtime.topology.model import (
    ConnectorSource,
    KafkaSink,
    KafkaSource,
    Part,
    SparkSink,
    SparkSource,
    Step,
    TcpSink,
    TcpSource,
    Topology,
)

IN_ORDER, AS_MANY = "in order", "in order, if there are as many as before"
Key = tuple[object, ...]
LOOKS = 3


def match_parts(old: Topology, new: Topology) -> dict[str, str]:
    """Map each source, step and sink of the new version to the part of the old version that it continues, by path.

    If a source, step or sink continues none, it is left out.

    First, steps match if pipeline, name and state are equal. Then, unmatched steps match if their paths are equal and
    both or neither have a state. So a moved step is found by its name, and a renamed step by its path.

    Sources and sinks are matched more strictly, because a checkpoint has messages for them. First they match if kind,
    pipeline, name and address (topic, or Spark's options) are equal. Then unmatched ones match in order if everything
    but the address is equal, and finally if the address is equal. In these two passes, old and new parts must be equal
    in number. So if two sinks at new addresses replace one of their name, neither of them matches it.
    """
    matched: dict[str, str] = {}
    for look in range(LOOKS):
        before, after = _grouped(old, look, {*matched.values()}), _grouped(new, look, {*matched})
        for key, paths in after.items():
            if key[0] == IN_ORDER or len(before[key]) == len(paths):
                matched.update(zip(paths, before[key], strict=False))
    return matched


def _grouped(topology: Topology, look: int, matched: set[str]) -> defaultdict[Key, list[str]]:
    """Group unmatched parts by the properties that `match_parts` compares in the pass `look`."""
    groups = defaultdict[Key, list[str]](list)
    for path, keys in _keyed(topology):
        if path not in matched:
            groups[keys[look]].append(path)
    return groups


def _keyed(topology: Topology) -> Iterator[tuple[str, tuple[Key, ...]]]:
    """Yield the path of each source, step and sink, with the properties that each pass of `match_parts` compares."""
    for part in topology.parts():
        pipeline = topology.pipelines[int(part.path.split("/")[0])].name
        if isinstance(part, Step):
            named = (IN_ORDER, pipeline, part.name, part.state.name if part.state else "")
            at = (IN_ORDER, part.path, part.state is not None)
            yield part.path, (named, at, at)
        else:
            address = _address(part)
            kind, called = type(part), (pipeline, part.name)
            yield part.path, ((IN_ORDER, kind, called, address), (AS_MANY, kind, called), (AS_MANY, kind, address))


def _address(part: Part) -> Key:
    """Return the address from which a source reads, or to which a sink writes; empty for a generator."""
    if isinstance(part, TcpSource | ConnectorSource | TcpSink):
        return part.host, part.port
    if isinstance(part, KafkaSource | KafkaSink):
        return part.topic, *sorted(part.brokers)
    if isinstance(part, SparkSource | SparkSink):
        return part.format, *sorted(part.options.items())
    return ()
