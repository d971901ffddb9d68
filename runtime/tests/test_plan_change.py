"""Every kind of change between two versions, and what it means for a checkpoint."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.manifest import put_manifest
from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.plan.change import Impact, compare
from wallaroo_runtime.plan.port import first_ports, kept_ports
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
WORD_COUNT: Any = json.loads((VALID / "word_count_open.json").read_bytes())
SHARED: Any = json.loads((VALID / "shared_state.json").read_bytes())
Edit = Callable[[Any], object]


def edited(document: Any, *edits: Edit) -> Topology:
    new = copy.deepcopy(document)
    for edit in edits:
        edit(new)
    return load_document(new)


def renumber(document: Any) -> None:
    """Rewrite paths and inputs after steps or pipelines were moved; `old` of a part keeps what inputs mean."""
    paths: dict[str, str] = {}
    for number, pipeline in enumerate(document["pipelines"]):
        for kind in ("sources", "steps", "sinks"):
            for index, part in enumerate(pipeline[kind]):
                paths[part["path"]] = f"{number}/{kind}/{index}"
    for pipeline in document["pipelines"]:
        for part in [*pipeline["sources"], *pipeline["steps"], *pipeline["sinks"]]:
            part["path"] = paths[part["path"]]
            part["inputs"] = [paths[path] for path in part.get("inputs", [])]
        for source in pipeline["sources"]:
            del source["inputs"]
    for worker in document["workers"]:
        for component in worker["components"]:
            base = "/".join(component["path"].split("/")[:3])
            component["path"] = paths[base] + component["path"][len(base) :]


def pipeline(document: Any) -> Any:
    return document["pipelines"][0]


def put(value: Any, *path: Any) -> Edit:
    def edit(document: Any) -> None:
        at = document
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return edit


def in_pipeline(value: Any, *path: Any) -> Edit:
    return put(value, "pipelines", 0, *path)


def insert_step(document: Any) -> None:
    """Put a step before the first one."""
    new = {"path": "0/steps/9", "name": "trim", "kind": "computation", "inputs": ["0/sources/0"]}
    pipeline(document)["steps"].insert(0, {**new, "codec": "native", "worker": "main"})
    pipeline(document)["steps"][1]["inputs"] = ["0/steps/9"]
    renumber(document)


def drop_step(document: Any) -> None:
    del pipeline(document)["steps"][0]
    worker = document["workers"][0]
    worker["components"] = [each for each in worker["components"] if each["path"] != "0/steps/0"]
    pipeline(document)["steps"][0]["inputs"] = ["0/sources/0"]
    renumber(document)


def add_sink(document: Any) -> None:
    sinks = pipeline(document)["sinks"]
    sinks.insert(0, {**sinks[0], "path": "0/sinks/9", "name": "log"})
    renumber(document)


def drop_pipeline(number: int) -> Edit:
    def edit(document: Any) -> None:
        gone = document["pipelines"].pop(number)
        paths = {part["path"] for kind in ("sources", "steps", "sinks") for part in gone[kind]}
        for worker in document["workers"]:
            worker["components"] = [
                each for each in worker["components"] if "/".join(each["path"].split("/")[:3]) not in paths
            ]
        renumber(document)

    return edit


def swap_pipelines(document: Any) -> None:
    document["pipelines"].reverse()
    renumber(document)


def second_state(document: Any) -> None:
    """Put a second state after the first one."""
    first = pipeline(document)["steps"][1]
    new = {**copy.deepcopy(first), "path": "0/steps/2", "name": "rank", "inputs": ["0/steps/1"]}
    new["state"]["name"] = "ranks"
    pipeline(document)["steps"].append(new)


def beside(document: Any) -> None:
    """Put a second state next to the first one."""
    second_state(document)
    pipeline(document)["steps"][2]["inputs"] = ["0/steps/0"]


def symbol(document: Any) -> None:
    parts = document["workers"][0]["components"]
    next(part for part in parts if part["path"] == "0/steps/1/state")["symbol"] = "New"


STEP, STATE, SOURCE, SINK = ("steps", 0), ("steps", 1, "state"), ("sources", 0), ("sinks", 0)
S, U, D, B = Impact.SAFE, Impact.UNKNOWN, Impact.NEEDS_DRAIN, Impact.BREAKS_STATE
HASH = "sha256:" + "7" * 64
COUNT = '"Count Word" (0/steps/1)'
CHANGES: dict[str, tuple[Any, list[Edit], list[tuple[Impact, str]]]] = {
    "nothing": (WORD_COUNT, [], []),
    "source address": (
        WORD_COUNT, [in_pipeline(1, *SOURCE, "port")],
        [(S, 'address of source "Split and Count" (0/sources/0) was 127.0.0.1:7010 and is 127.0.0.1:1')],
    ),
    "sink address": (
        WORD_COUNT, [in_pipeline("::1", *SINK, "host")],
        [(S, 'address of sink "Split and Count" (0/sinks/0) was 127.0.0.1:7002 and is ::1:7002')],
    ),
    "code": (WORD_COUNT, [put(HASH, "workers", 0, "code_hash")], [
        (U, f'state "word totals" of step {COUNT} reads old state at the run'), (S, 'code of worker "main" changed'),
    ]),
    "a place of the program's": (
        WORD_COUNT, [put(["/elsewhere/" + WORD_COUNT["workers"][0]["command"][0].rpartition("/")[2],
                          *WORD_COUNT["workers"][0]["command"][1:]], "workers", 0, "command")], [],
    ),
    "args": (WORD_COUNT, [put(["-v"], "workers", 0, "args")], [(S, 'args of worker "main" changed')]),
    "directory": (WORD_COUNT, [put("/a", "workers", 0, "directory")], [(S, 'directory of worker "main" changed')]),
    "command": (WORD_COUNT, [put(["/a"], "workers", 0, "command")], [(S, 'command of worker "main" changed')]),
    "SDK": (WORD_COUNT, [put("9", "workers", 0, "sdk_version")], [(S, 'SDK version of worker "main" changed')]),
    "deadline": (
        WORD_COUNT, [put(5, "workers", 0, "call_deadline_ms")], [(S, 'call_deadline_ms of worker "main" changed')],
    ),
    "largest message": (
        WORD_COUNT, [in_pipeline(9, *SOURCE, "max_message_bytes")],
        [(S, 'max_message_bytes of source "Split and Count" (0/sources/0) was 16777216 and is 9')],
    ),
    "policies": (
        WORD_COUNT, [put("fail", "on_error"), in_pipeline("fail", *STEP, "on_error")],
        [
            (S, "on_error of the application was not said and is fail"),
            (S, 'on_error of step "split into words" (0/steps/0) was inherited and is fail'),
        ],
    ),
    "key list": (
        WORD_COUNT, [in_pipeline(["a"], *STATE, "key", "values"), in_pipeline("dead_letter", *STATE, "key", "unknown")],
        [
            (S, f"unknown keys of step {COUNT} was create and is dead_letter"),
            (S, f"number of listed keys of step {COUNT} was 0 and is 1"),
        ],
    ),
    "step renamed": (
        WORD_COUNT, [in_pipeline("cut", *STEP, "name")],
        [(S, 'name of step "cut" (0/steps/0) was "split into words" and is "cut"')],
    ),
    "pipeline renamed": (
        WORD_COUNT, [in_pipeline("Words", "name")], [(S, 'pipelines: gone "Split and Count"; new "Words"')],
    ),
    "kind of a step": (
        WORD_COUNT, [in_pipeline("computation", *STEP, "kind")],
        [(S, 'kind of step "split into words" (0/steps/0) was computation_multi and is computation')],
    ),
    "kind of a state step": (
        WORD_COUNT, [in_pipeline("state_computation_multi", "steps", 1, "kind")],
        [(S, f"kind of step {COUNT} was state_computation and is state_computation_multi")],
    ),
    "a step more": (
        WORD_COUNT, [insert_step],
        [
            (S, 'step "trim" (0/steps/0) is new'),
            (S, 'input of step "split into words" (0/steps/1) was 0/sources/0 and is 0/steps/0 (new)'),
        ],
    ),
    "a step less": (
        WORD_COUNT, [drop_step],
        [
            (S, 'input of step "Count Word" (0/steps/0) was 0/steps/0 and is 0/sources/0'),
            (S, 'step "split into words" (0/steps/0) is gone'),
        ],
    ),
    "a sink more": (WORD_COUNT, [add_sink], [(S, 'sink "log" (0/sinks/0) is new')]),
    "a sink less": (
        SHARED, [in_pipeline([], "sinks"), put([{
            "path": "1/sinks/0", "name": "late", "kind": "tcp", "host": "h", "port": 1, "inputs": ["1/steps/0"],
            "worker": "main",
        }], "pipelines", 1, "sinks")],
        [
            (D, 'sink "Orders" (0/sinks/0) is gone; output that waits for it would never be delivered'),
            (S, 'sink "late" (1/sinks/0) is new'),
        ],
    ),
    "framing": (
        WORD_COUNT, [in_pipeline({"kind": "worker", "header_bytes": 4}, *SOURCE, "framing")],
        [(D, 'framing of source "Split and Count" (0/sources/0) was u32be and is worker with 4 bytes; '
             "the journal holds messages as they came")],
    ),
    "a source in place of another": (
        WORD_COUNT, [in_pipeline("rows", "sources", 0, "name"), in_pipeline(7999, "sources", 0, "port")],
        [
            (D, 'source "Split and Count" (0/sources/0) is gone; '
                "its messages in the journal could no longer be decoded"),
            (S, 'source "rows" (0/sources/0) is new'),
            (S, 'input of step "split into words" (0/steps/0) was 0/sources/0 and is 0/sources/0 (new)'),
        ],
    ),
    "a pipeline less": (
        SHARED, [drop_pipeline(1)],
        [
            (D, 'source "Market Data" (1/sources/0) is gone; '
                "its messages in the journal could no longer be decoded"),
            (S, 'pipelines: gone "Market Data"; new none'),
            (S, 'step "Update Market Data" (1/steps/0) is gone'),
        ],
    ),
    "pipelines in another order": (
        SHARED, [swap_pipelines], [(S, "pipelines stand in another order; their parts keep their ports")],
    ),
    "a second state next to": (WORD_COUNT, [beside], [(S, 'step "rank" (0/steps/2) is new')]),
    "a second state after": (
        WORD_COUNT, [second_state],
        [
            (B, 'the number of shuffles was 1 and is 2, because of state "ranks"; Spark\'s checkpoint has 1'),
            (S, 'step "rank" (0/steps/2) is new'),
        ],
    ),
    "state renamed": (
        WORD_COUNT, [in_pipeline("totals", *STATE, "name")],
        [(B, f'state of step {COUNT} was "word totals" and is "totals"; what it has kept would be lost')],
    ),
    "kind of key": (
        WORD_COUNT, [in_pipeline({"kind": "single"}, *STATE, "key")],
        [(B, f'kind of key of state "word totals" of step {COUNT} was partition and is single; '
             "messages would not find the state that was kept")],
    ),
    "class": (
        WORD_COUNT, [symbol],
        [(B, f'class of state "word totals" of step {COUNT} was WordTotals and is New; it cannot read what was kept')],
    ),
    "language": (
        WORD_COUNT, [put("go", "workers", 0, "language")],
        [
            (B, f'language of state "word totals" of step {COUNT} was python and is go; it cannot read what was kept'),
            (S, 'language of worker "main" changed'),
        ],
    ),
    "application": (
        WORD_COUNT, [put("Other", "name")],
        [(B, 'application was "Word Count Application" and is "Other"; a checkpoint belongs to one application')],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_change(name: str) -> None:
    document, edits, expected = CHANGES[name]
    found = compare(load_document(document), edited(document, *edits))
    assert [(change.impact, change.text) for change in found] == expected


def of_shapes(language: str, old: Any, new: Any) -> list[tuple[Impact, str]]:
    """Return what is said of two shapes of the state, without the rest."""

    def shaped(shape: Any, code: str) -> Topology:
        def edit(document: Any) -> None:
            document["workers"][0] |= {"language": language, "code_hash": code}
            part = next(each for each in document["workers"][0]["components"] if each["path"] == "0/steps/1/state")
            part |= {"symbol": "T"} | ({} if shape is None else {"shape": shape})

        return edited(WORD_COUNT, edit)

    head = f'state "word totals" of step {COUNT} '
    found = compare(shaped(old, HASH), shaped(new, HASH.replace("7", "8")))
    return [(each.impact, each.text.removeprefix(head)) for each in found if each.text.startswith(head)]


@pytest.mark.parametrize(
    ("language", "old", "new", "expected"),
    [
        ("go", {"N": "int", "T": "float"}, {"N": "int", "S": "float"},
         (B, 'was T {T float, ...} and is T {S float, ...}; what was kept in field "T" would be lost')),
        ("go", {"N": "float"}, {"N": "string"},
         (B, 'was T {N float} and is T {N string}; what was kept in field "N" cannot be read')),
        ("go", {"": "map[string]int"}, {"": "map[string]float"},
         (B, "was T {map[string]int} and is T {map[string]float}; what was kept in it cannot be read")),
        ("python", {"n": "int"}, {"n": "int | None"}, (U, 'reads old state at the run, in field "n"')),
        ("python", {"n": "int"}, {"n": "int", "m": "int!"},
         (B, 'was T {...} and is T {m int, ...}; states that were kept have none; give field "m" a value in the '
             "class's body, such as `m = None` (no default_factory)")),
        ("python", {}, {"m": "int!"},
         (B, 'was T {} and is T {m int}; states that were kept have none; give field "m" a value in the '
             "class's body, such as `m = None` (no default_factory)")),
        ("python", {"n": "int!"}, {}, (U, 'reads old state at the run, in field "n"')),
        ("python", {"n": "int!"}, {"n": "str!"},
         (B, 'was T {n int} and is T {n str}; what was kept in field "n" cannot be read')),
        ("python", {"n": "int!"}, {"n": "float!"}, (U, 'reads old state at the run, in field "n"')),
        ("python", {"n": "dict[str, int]"}, {"n": "list[int]"},
         (B, 'was T {n dict[str, int]} and is T {n list[int]}; what was kept in field "n" cannot be read')),
        ("go", {"N": "int"}, {"N": "int", "M": "int"}, (S, 'has the new field "M"')),
        ("python", {"n": "int!"}, {"n": "int!", "a": "int", "b": "str"}, (S, 'has the new field "a", field "b"')),
        ("go", {"N": "main.Own?"}, {"N": "main.Own?"}, (U, 'reads old state at the run, in field "N"')),
        ("go", None, {"N": "int"}, (U, "reads old state at the run")),
        ("go", {"N": "int"}, None, (U, "reads old state at the run")),
    ],
)  # fmt: skip
def test_shapes_of_a_state(language: str, old: Any, new: Any, expected: tuple[Impact, str] | None) -> None:
    assert of_shapes(language, old, new) == ([expected] if expected else [])


def test_a_state_that_moves_behind_another_shuffle() -> None:
    old = edited(WORD_COUNT, second_state)

    def turn_around(document: Any) -> None:
        first, second = pipeline(document)["steps"][1:]
        first["state"], second["state"] = second["state"], first["state"]
        document["workers"][0]["components"] = []

    found = compare(old, edited(old.document, turn_around))
    assert {change.text for change in found if change.impact is B} == {
        'place of state "word totals" of step "rank" (0/steps/2) in the plan was s1 and is s2; '
        "Spark's checkpoint keeps it there",
        'place of state "ranks" of step "Count Word" (0/steps/1) in the plan was s2 and is s1; '
        "Spark's checkpoint keeps it there",
    }


def test_a_state_that_is_gone() -> None:
    old = edited(WORD_COUNT, beside)
    found = compare(old, load_document(WORD_COUNT))
    assert [(change.impact, change.text) for change in found] == [
        (B, 'state "ranks" of step "rank" (0/steps/2) is gone; what it has kept would be lost'),
        (S, 'step "rank" (0/steps/2) is gone'),
    ]


def test_ports_stay_with_their_parts_and_are_never_given_again() -> None:
    old = load_document(SHARED)
    before = first_ports(old)
    assert before.parts == {"0/sources/0": 0, "1/sources/0": 1, "0/steps/0": 2, "1/steps/0": 3, "0/sinks/0": 4}
    assert before.states == {"symbol-data": 2}
    swapped = edited(SHARED, swap_pipelines)
    kept = kept_ports(old, before, swapped)
    assert kept.parts == {"1/sources/0": 0, "0/sources/0": 1, "1/steps/0": 2, "0/steps/0": 3, "1/sinks/0": 4}
    assert kept.states == {"symbol-data": 2}, "the state's logs carry this number, whichever step is the first now"
    fewer = edited(SHARED, drop_pipeline(1))
    less = kept_ports(old, before, fewer)
    assert (less.parts, less.next) == ({"0/sources/0": 0, "0/steps/0": 2, "0/sinks/0": 4}, 5)
    again = kept_ports(fewer, less, old)
    assert again.parts == {"0/sources/0": 0, "1/sources/0": 5, "0/steps/0": 2, "1/steps/0": 6, "0/sinks/0": 4}
    plan = compile_topology(swapped, shuffle_partitions=1, ports=kept)
    states = {node.path: (node.port, node.state_port) for node in plan.levels[1][0].entries}
    assert states == {"0/steps/0": (3, 2), "1/steps/0": (2, 2)}


@pytest.mark.parametrize(("edit", "code"), [(insert_step, 0), (in_pipeline("x", *STATE, "name"), 1)])
def test_the_command(edit: Edit, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / "new.json"
    new.write_text(json.dumps(edited(WORD_COUNT, edit).document))
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    put_manifest(checkpoint, WORD_COUNT)
    for old in (VALID / "word_count_open.json", checkpoint):
        assert cli.main(["diff", str(old), str(new)]) == code
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith(("safe          ", "breaks state  ")[code])
        assert cli.main(["diff", str(old), str(new), "--json"]) == code
        items = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [item["text"] for item in items] == [line[14:] for line in lines]
        assert items[0]["impact"] == ("safe", "breaks_state")[code]
    assert cli.main(["diff", str(new), str(new)]) == 0
    assert capsys.readouterr().out == "nothing changed\n"
    assert cli.main(["diff", str(new), str(tmp_path / "gone.json")]) == 2
