"""Finds the parts of an application again in another version of it."""

from collections import Counter
from collections.abc import Iterable

from wallaroo_runtime.topology.model import Part, Step, Topology


def match_parts(old: Topology, new: Topology) -> dict[str, str]:
    """Return for each path of `new` the path of the same source, step or sink in `old`; new parts are left out.

    A part is the same when kind, pipeline, name and state are equal; of those that remain, when its path is. So what
    was moved is found by its name, and what was renamed by its place.
    """
    matched: dict[str, str] = {}
    taken: set[str] = set()
    for is_last in (False, True):
        before = {key: part.path for key, part in _keyed(old, is_last) if part.path not in taken}
        for key, part in _keyed(new, is_last):
            path = before.get(key)
            if path is not None and part.path not in matched and path not in taken:
                matched[part.path] = path
                taken.add(path)
    return matched


def _keyed(topology: Topology, by_place: bool) -> Iterable[tuple[object, Part]]:
    counted: Counter[object] = Counter()
    for part in topology.parts():
        pipeline = topology.pipelines[int(part.path.split("/")[0])].name
        key: object = (type(part), part.path, _has_state(part))
        if not by_place:
            state = part.state.name if isinstance(part, Step) and part.state else ""
            named = (type(part).__name__, pipeline, part.name, state)
            key = (named, counted[named])
            counted[named] += 1
        yield key, part


def _has_state(part: Part) -> bool:
    return isinstance(part, Step) and part.state is not None
