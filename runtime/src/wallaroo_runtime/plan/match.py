"""Finds the parts of an application again in another version of it."""

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
    """Return for each path of `new` the path of the same source, step or sink in `old`; new parts are left out.

    A step is the same when kind, pipeline, name and state are equal, else when its path is: one that was moved is found
    by its name, one that was renamed by its place.

    Of sources and sinks a checkpoint has messages, which must not come to other ones. They are the same when kind,
    pipeline, name and address (topic, or Spark's options) are equal; of those that remain, when all but the address
    is, in their order; else when the address is. The last two hold where there are as many as before: with two sinks
    of one name in place of one, both at new addresses, neither is the former one.
    """
    matched: dict[str, str] = {}
    for look in range(LOOKS):
        before, after = _grouped(old, look, {*matched.values()}), _grouped(new, look, {*matched})
        for key, paths in after.items():
            if key[0] == IN_ORDER or len(before[key]) == len(paths):
                matched.update(zip(paths, before[key], strict=False))
    return matched


def _grouped(topology: Topology, look: int, matched: set[str]) -> defaultdict[Key, list[str]]:
    """Return the paths of parts that are not matched yet, by keys that parts of the other version may share."""
    groups = defaultdict[Key, list[str]](list)
    for path, keys in _keyed(topology):
        if path not in matched:
            groups[keys[look]].append(path)
    return groups


def _keyed(topology: Topology) -> Iterator[tuple[str, tuple[Key, ...]]]:
    """Yield the path of each part, and the keys that the same part of another version shares: one for each look."""
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
    """Return where a source or sink has its messages from, or sends them; a generator has no address."""
    if isinstance(part, TcpSource | ConnectorSource | TcpSink):
        return part.host, part.port
    if isinstance(part, KafkaSource | KafkaSink):
        return part.topic, *sorted(part.brokers)
    if isinstance(part, SparkSource | SparkSink):
        return part.format, *sorted(part.options.items())
    return ()
