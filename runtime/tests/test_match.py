"""Sources and sinks of a changed program: output that waits for one receiver never comes to another one."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from support.border_plan import WORKER, source
from wallaroo_runtime.plan.change import Impact, compare
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.match import match_parts
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

Document = dict[str, Any]
End = tuple[str, int]  # name and port
ENDS = some.lists(some.tuples(some.sampled_from("ab"), some.integers(7001, 7004)), min_size=1, max_size=5)


def sink(number: int, *inputs: str) -> Document:
    tcp = {"kind": "tcp", "host": "127.0.0.1", "port": 7002}
    return {
        "path": f"0/sinks/{number}",
        "name": f"out{number}",
        **tcp,
        "inputs": list(inputs),
        "worker": "main",
    }


def document(steps: list[Document], sinks: list[Document]) -> Document:
    pipeline = {"name": "p", "sources": [source()], "steps": steps, "sinks": sinks}
    workers = [WORKER | {"name": name, "components": []} for name in ("main", "other")]
    return {"topology_version": 1, "name": "drawn", "workers": workers, "pipelines": [pipeline]}


def loaded(value: Document) -> Topology:
    topology = load_document(value)
    compile_topology(topology, shuffle_partitions=1)
    return topology


def allowed(ends: list[End], kind: str) -> list[End]:
    """Return ends that an application can have: two sources cannot listen at one address."""
    return list({end[1]: end for end in ends}.values()) if kind == "sources" else ends


def of_sinks(ends: list[End]) -> Topology:
    sinks = [sink(number, "0/sources/0") | {"name": name, "port": port} for number, (name, port) in enumerate(ends)]
    return loaded(document([], sinks))


def of_sources(ends: list[End]) -> Topology:
    value = document([], [sink(0, *(f"0/sources/{number}" for number in range(len(ends))))])
    value["pipelines"][0]["sources"] = [
        source() | {"path": f"0/sources/{number}", "name": name, "port": port}
        for number, (name, port) in enumerate(ends)
    ]
    return loaded(value)


def pairs(before: list[End], after: list[End], kind: str) -> list[tuple[End, End]]:
    of = of_sinks if kind == "sinks" else of_sources
    matched = {now: was for now, was in match_parts(of(before), of(after)).items() if kind in now}
    assert len({*matched.values()}) == len(matched)
    return [(before[int(was[-1])], after[int(now[-1])]) for now, was in matched.items()]


@given(ENDS, ENDS, some.sampled_from(["sinks", "sources"]))
def test_an_end_is_known_by_its_name_and_address_then_by_one_of_them(
    before: list[End], after: list[End], kind: str
) -> None:
    before, after = allowed(before, kind), allowed(after, kind)
    found = pairs(before, after, kind)
    same = Counter(before) & Counter(after)
    assert Counter(was for was, now in found if was == now) == same
    left, added = Counter(before) - same, Counter(after) - same
    for name in "ab":  # as many of a name as before: they have moved
        counts = [sum(count for end, count in each.items() if end[0] == name) for each in (left, added)]
        moved = [(was, now) for was, now in found if was != now and was[0] == now[0] == name]
        assert len(moved) == (counts[0] if counts[0] == counts[1] else 0)
    assert all(was[0] == now[0] or was[1] == now[1] for was, now in found)


@given(ENDS, some.randoms(), some.integers(0, 5), some.sampled_from(["sinks", "sources"]))
def test_what_is_added_or_stands_elsewhere_takes_nothing_of_others(
    ends: list[End], random: object, at: int, kind: str
) -> None:
    ends = allowed(ends, kind)
    after = list(ends)
    random.shuffle(after)  # type: ignore[attr-defined]
    after.insert(min(at, len(after)), ("a", 7009))
    assert sorted(pairs(ends, after, kind)) == sorted((end, end) for end in ends)


def test_two_sinks_of_one_name_at_new_addresses_in_place_of_one_are_new() -> None:
    old, new = of_sinks([("a", 7001)]), of_sinks([("a", 7002), ("a", 7003)])
    assert [(each.impact, each.text.split(";")[0]) for each in compare(old, new)] == [
        (Impact.NEEDS_DRAIN, 'sink "a" (0/sinks/0) is gone'),
        (Impact.SAFE, 'sink "a" (0/sinks/0) is new'),
        (Impact.SAFE, 'sink "a" (0/sinks/1) is new'),
    ]
