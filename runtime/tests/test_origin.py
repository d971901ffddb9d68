"""A changed plan keeps the places of results: drawn changes, compared with what the operators would deliver."""

import copy
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as some
from test_plan_border import MESSAGE, PARTITION, VALID, WORKER, source, step

from wallaroo_runtime.checkpoint.place import keeps_places
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Node, NodeKind, Plan, Stage, compile_topology
from wallaroo_runtime.plan.change import Impact, compare
from wallaroo_runtime.plan.match import match_parts
from wallaroo_runtime.plan.origin import blocks_of, is_kept
from wallaroo_runtime.plan.port import Ports, first_ports, kept_ports
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

BUCKETS, MESSAGES = 3, 30
Document = dict[str, Any]
Draw = Any


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


@some.composite
def applications(draw: Draw) -> Document:
    steps: list[Document] = []
    for number in range(draw(some.integers(1, 6))):
        before = ["0/sources/0", *(each["path"] for each in steps)]
        inputs = draw(some.lists(some.sampled_from(before[-3:]), min_size=1, max_size=2, unique=True))
        kind = draw(some.sampled_from(["computation", "computation", "key_by", "state_computation"]))
        on = "main" if kind == "key_by" else draw(some.sampled_from(["main", "main", "other"]))
        keys = {"key": PARTITION} if kind == "state_computation" else {}
        steps.append(step(number, *inputs, kind=kind, on="main" if keys else on, **keys))
    ends = [each["path"] for each in steps]
    return document(steps, [sink(at, draw(some.sampled_from(ends))) for at in range(draw(some.integers(1, 3)))])


def loaded(value: Document) -> Topology:
    topology = load_document(value)
    compile_topology(topology, shuffle_partitions=1)
    return topology


def is_possible(old: Document, new: Document) -> bool:
    """Say whether both can run, and no state would be lost."""
    try:
        return all(change.impact is not Impact.BREAKS_STATE for change in compare(loaded(old), loaded(new)))
    except RunError:
        return False


def planned(topology: Topology, ports: Ports) -> Plan:
    return compile_topology(topology, shuffle_partitions=1, buckets_per_partition=BUCKETS, ports=ports)


@dataclass(frozen=True)
class Item:
    """A message between stages."""

    port: int
    bucket: int
    origin: int
    sequence: int
    value: int


class Engine:
    """What the operators do with messages, as far as results, dead letters and their marks are concerned.

    Attributes:
        results: By port and origin, in their order.
        letters: By part, origin and sequence.
    """

    def __init__(self, plan: Plan, names: Mapping[str, str]) -> None:
        self.plan, self._names, self._blocks = plan, names, blocks_of(plan)
        self._source = next(node.port for node in plan.levels[0][0].entries if self.called(node) == "0/sources/0")
        self._states: dict[tuple[str, int, int], int] = defaultdict(int)
        self.results: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self.letters: Counter[tuple[str, int, int]] = Counter()

    def nodes(self) -> list[Node]:
        return [node for stage in self.plan.stages for node in stage.nodes]

    def called(self, node: Node) -> str:
        return self._names.get(node.path, node.path)

    def run(self) -> None:
        for sequence in range(MESSAGES):
            items = [Item(self._source, -1, -1, sequence, _mixed("message", sequence))]
            for stage in self.plan.stages:
                mine = [each for each in items if each.port in stage.entry_ports]
                items = [each for each in items if each.port not in stage.entry_ports]
                for each in sorted(mine, key=lambda item: (item.port, item.origin)):
                    items += self._enter(stage, each)
            for each in items:
                self.results[each.port, each.origin].append((each.sequence, each.value))

    def _enter(self, stage: Stage, item: Item) -> Iterator[Item]:
        block, origin = self._blocks[stage.id], -1
        if stage.has_state:
            origin = block * BUCKETS + item.bucket
        elif stage is not self.plan.levels[0][0]:
            sender = 0 if item.origin < 0 else item.origin // BUCKETS + 1
            entry = sorted(stage.entry_ports).index(item.port)
            origin = (block + entry * (block + 1) + sender) * BUCKETS + max(item.origin, 0) % BUCKETS
        entry_node = next(node for node in stage.entries if node.port == item.port)
        yield from self._node(stage, entry_node, item, origin)

    def _node(self, stage: Stage, node: Node, item: Item, origin: int) -> Iterator[Item]:
        """Run user code that depends on the part and the message alone, then what follows, depth first."""
        called = self.called(node)
        if node.kind in (NodeKind.SEND, NodeKind.RECEIVE):
            values = [item.value]
        else:
            value = _mixed(called, item.value)
            if node.state:
                key = (node.state, item.bucket, item.value % 7)
                self._states[key] = value = _mixed("state", value + self._states[key])
            if value % 11 == 0:
                self.letters[called, origin, item.sequence] += 1
                return
            values = [value + number for number in range([1, 1, 0, 2][value % 4])]
        if node.kind is NodeKind.KEY:
            bucket = _mixed(f"key {called}", item.value) % BUCKETS
            yield Item(node.port, bucket, origin, item.sequence, item.value)
            return
        if node.kind in (NodeKind.SINK, NodeKind.SEND):
            yield Item(node.port, -1, origin, item.sequence, values[0] if values else item.value)
            return
        for value in values:
            for after in stage.nodes:
                if node.path in after.inputs and after is not node:
                    yield from self._node(
                        stage, after, Item(item.port, item.bucket, origin, item.sequence, value), origin
                    )


def _mixed(word: str, value: int) -> int:
    return crc32(f"{word} {value}".encode())


def others(value: Document, path: str) -> list[str]:
    return [each["path"] for each in value["pipelines"][0]["steps"] if each["path"] != path]


def code_only(draw: Draw, value: Document) -> bool:
    value["workers"][0]["code_hash"] = "f" * 64
    return True


def renamed(draw: Draw, value: Document) -> bool:
    draw(some.sampled_from(value["pipelines"][0]["steps"]))["name"] = "renamed"
    return True


def other_settings(draw: Draw, value: Document) -> bool:
    part = draw(some.sampled_from([*value["pipelines"][0]["steps"], *value["pipelines"][0]["sinks"]]))
    part["on_error"] = "fail"
    value["pipelines"][0]["sources"][0]["max_message_bytes"] = 2048
    return True


def visitor(draw: Draw, value: Document) -> bool:
    keyed = [each for each in value["pipelines"][0]["steps"] if "state" in each]
    assume(keyed)
    draw(some.sampled_from(keyed))["visits"] = ["reset"]
    return True


def sink_added(draw: Draw, value: Document) -> bool:
    sinks = value["pipelines"][0]["sinks"]
    sinks.append(sink(len(sinks), *draw(some.sampled_from(sinks))["inputs"]))
    return True


def sink_removed(draw: Draw, value: Document) -> bool | None:
    assume(len(value["pipelines"][0]["sinks"]) > 1)
    value["pipelines"][0]["sinks"].pop()
    return None  # another border may go with it


def sink_moved(draw: Draw, value: Document) -> bool:
    moved = draw(some.sampled_from(value["pipelines"][0]["sinks"]))
    ends = others(value, moved["inputs"][0])
    assume(ends)
    moved["inputs"] = [draw(some.sampled_from(ends))]
    return False


def sinks_swapped(draw: Draw, value: Document) -> bool:
    sinks = value["pipelines"][0]["sinks"]
    assume(len(sinks) > 1 and sinks[0]["inputs"] != sinks[1]["inputs"])
    sinks[0]["inputs"], sinks[1]["inputs"] = sinks[1]["inputs"], sinks[0]["inputs"]
    return False


def step_added(draw: Draw, value: Document) -> bool:
    """Put a step before a sink."""
    steps, changed = value["pipelines"][0]["steps"], draw(some.sampled_from(value["pipelines"][0]["sinks"]))
    on = draw(some.sampled_from(["main", "other"]))
    steps.append(step(len(steps), *changed["inputs"], on=on))
    changed["inputs"] = [steps[-1]["path"]]
    return False


def branch_added(draw: Draw, value: Document) -> bool | None:
    """Add a step, maybe with a new state or on the other worker, and a sink of its own."""
    steps, sinks = value["pipelines"][0]["steps"], value["pipelines"][0]["sinks"]
    kind = draw(some.sampled_from(["computation", "state_computation"]))
    keys = {"key": PARTITION} if kind == "state_computation" else {"on": draw(some.sampled_from(["main", "other"]))}
    steps.append(step(len(steps), draw(some.sampled_from(others(value, ""))), kind=kind, **keys))
    sinks.append(sink(len(sinks), steps[-1]["path"]))
    return None


def pipeline_added(draw: Draw, value: Document) -> bool:
    """Add a pipeline before or after the one that is there, whose paths may change with it."""
    added: Document = {"name": "q", "sources": [source() | {"port": 7011}], "steps": [], "sinks": []}
    kind = draw(some.sampled_from(["computation", "state_computation"]))
    keys = {"key": PARTITION} if kind == "state_computation" else {}
    added["steps"] = [step(0, "0/sources/0", kind=kind, **keys)]
    if keys:
        added["steps"][0]["state"]["name"] = "another"
    added["sinks"] = [sink(0, "0/steps/0")]
    pipelines = draw(some.permutations([value["pipelines"][0], added]))
    value["pipelines"] = [
        json.loads(re.sub(r'"0/(sources|steps|sinks)', rf'"{number}/\1', json.dumps(each)))
        for number, each in enumerate(pipelines)
    ]
    return True


def input_moved(draw: Draw, value: Document) -> bool:
    steps = value["pipelines"][0]["steps"]
    at = draw(some.integers(0, len(steps) - 1))
    before = ["0/sources/0", *(each["path"] for each in steps[:at])]
    inputs = [each for each in before if [each] != steps[at]["inputs"]]
    assume(inputs)
    steps[at]["inputs"] = [draw(some.sampled_from(inputs))]
    return False


CHANGES = [
    code_only, renamed, other_settings, visitor, sink_added, sink_removed, sink_moved, sinks_swapped, step_added,
    branch_added, pipeline_added, input_moved,
]  # fmt: skip


def compared(old: Document, new: Document) -> tuple[bool, Engine, Engine]:
    """Return the verdict, and what both programs deliver."""
    before, after = loaded(old), loaded(new)
    ports = first_ports(before)
    matched = match_parts(before, after)
    plans = planned(before, ports), planned(after, kept_ports(before, ports, after))
    names = {part.path: matched.get(part.path, f"new {part.path}") for part in after.parts()}
    engines = Engine(plans[0], {}), Engine(plans[1], names)
    for engine in engines:
        engine.run()
    return is_kept(*plans, matched), *engines


def by_port(engine: Engine, ports: set[int]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    return {place: items for place, items in engine.results.items() if place[0] in ports}


def by_part(engine: Engine, parts: set[str]) -> dict[tuple[str, int, int], int]:
    return {place: count for place, count in engine.letters.items() if place[0] in parts}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(some.data(), applications(), some.sampled_from(CHANGES))
def test_what_is_kept_comes_again_in_the_same_places(data: Any, old: Document, change: Any) -> None:
    new = copy.deepcopy(old)
    expected = change(data.draw, new)
    assume(is_possible(old, new))
    kept, before, after = compared(old, new)
    event(f"{change.__name__}: {kept}")
    assert expected is None or kept == expected
    if not kept:
        return
    ports = [{node.port for node in engine.nodes() if node.kind is NodeKind.SINK} for engine in (before, after)]
    assert by_port(before, ports[0] & ports[1]) == by_port(after, ports[0] & ports[1])
    parts = [{engine.called(node) for node in engine.nodes()} for engine in (before, after)]
    assert by_part(before, parts[0] & parts[1]) == by_part(after, parts[0] & parts[1])


def test_a_sink_of_another_stage_a_key_of_another_step_and_a_visitor() -> None:
    parsed, keyed = step(0, "0/sources/0"), step(1, "0/steps/0", kind="state_computation", key=PARTITION)
    old = document([parsed, keyed], [sink(0, "0/steps/1"), sink(1, "0/steps/0")])
    moved = document([parsed, keyed], [sink(0, "0/steps/1"), sink(1, "0/steps/1")])
    assert not compared(old, moved)[0]
    swapped = document([parsed, keyed], [sink(0, "0/steps/0"), sink(1, "0/steps/1")])
    assert not compared(old, swapped)[0]
    visited = document([parsed, keyed | {"visits": ["reset"]}], [sink(0, "0/steps/1"), sink(1, "0/steps/0")])
    assert compared(old, visited)[0]
    by = [step(at, "0/sources/0", kind="key_by") for at in (0, 1)]
    plans = [document([*by, step(2, by[at]["path"], kind="state_computation", key=MESSAGE)], [sink(0, "0/steps/2")])
             for at in (0, 1)]  # fmt: skip
    assert not compared(*plans)[0]


WINDOWS = VALID / "every_kind.json"


@given(some.data())
def test_other_settings_of_a_window_give_its_results_in_other_places(data: Draw) -> None:
    old = json.loads(WINDOWS.read_bytes())
    new = copy.deepcopy(old)
    found = [each for each in new["pipelines"][0]["steps"] if "window" in each]
    window = data.draw(some.sampled_from(found))["window"]
    name = data.draw(some.sampled_from(sorted(window.keys() & {"delay_ms", "late", "flush_ms"})))
    other = some.sampled_from(["drop", "fire_per_message"]) if name == "late" else some.integers(1, 5000)
    window[name] = data.draw(other)
    before, after = load_document(old), load_document(new)
    manifest = {
        "topology": old,
        "shuffle_partitions": 2,
        "buckets_per_partition": BUCKETS,
        **first_ports(before).to_json(),
    }
    assert keeps_places(manifest, before)
    assert keeps_places(manifest, after) == (old == new)
