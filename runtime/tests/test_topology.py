"""Reading topology documents: the shared vectors, and the text of every finding."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.topology.canonical import canonical_text, interface_hash
from wallaroo_runtime.topology.load import MAX_DOCUMENT_BYTES, load, load_document, parse
from wallaroo_runtime.topology.schema import shown_json

VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors"
VALID = sorted((VECTORS / "topologies" / "valid").glob("*.json"))
INVALID = sorted((VECTORS / "topologies" / "invalid").glob("*.json"))
WORD_COUNT = json.loads((VECTORS / "topologies" / "valid" / "word_count.json").read_bytes())


def changed(change: Callable[[Any], object]) -> str:
    """Return the findings about the word count after a change."""
    document = copy.deepcopy(WORD_COUNT)
    change(document)
    with pytest.raises(RunError) as caught:
        load(json.dumps(document).encode())
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_schema_names_the_schema_and_means_nothing() -> None:
    named = {"$schema": "https://example.org/topology.schema.json", **WORD_COUNT}
    topology = load(json.dumps(named).encode())
    assert canonical_text(topology.document) == canonical_text(WORD_COUNT)
    assert interface_hash(topology) == interface_hash(load(json.dumps(WORD_COUNT).encode()))
    with pytest.raises(RunError, match=r"T102 .*\n  at /\$schema"):
        load(json.dumps({**WORD_COUNT, "$schema": 1}).encode())


def put(*path: Any) -> Callable[[Any], None]:
    """Return a change that puts the last argument where the others lead."""

    def change(document: Any) -> None:
        for key in path[:-2]:
            document = document[key]
        document[path[-2]] = path[-1]

    return change


STEP = ("pipelines", 0, "steps", 0)
STATE = ("pipelines", 0, "steps", 1, "state")
SOURCE = ("pipelines", 0, "sources", 0)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_valid_vectors_load_and_are_canonical(path: Path) -> None:
    text = path.read_bytes()
    load(text)
    assert canonical_text(parse(text)).encode() == text


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_vectors_give_exactly_the_expected_findings(path: Path) -> None:
    case = json.loads(path.read_bytes())
    data = case["text"] if "text" in case else json.dumps(case["document"])
    with pytest.raises(RunError) as caught:
        load(data.encode())
    found = [(finding.code, finding.pointer) for finding in caught.value.diagnostics]
    assert found == [(expected["code"], expected.get("pointer", "")) for expected in case["expect"]]
    assert all(finding.fix and finding.message for finding in caught.value.diagnostics)


def test_interface_hashes_are_those_of_the_vectors() -> None:
    cases = json.loads((VECTORS / "interface_hash.json").read_bytes())["files"]
    for case in cases:
        assert interface_hash(load((VECTORS / case["document"]).read_bytes())) == case["interface_hash"]


def test_key_order_and_spacing_of_the_file_do_not_matter() -> None:
    def reversed_keys(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: reversed_keys(value[key]) for key in reversed(value)}
        return [reversed_keys(item) for item in value] if isinstance(value, list) else value

    topology = load(json.dumps(reversed_keys(WORD_COUNT)).encode())
    assert canonical_text(topology.document) == canonical_text(WORD_COUNT)


def test_values_of_the_model() -> None:
    topology = load_document(WORD_COUNT)
    (source,), (split, count), (sink,) = list(topology.sources()), list(topology.steps()), list(topology.sinks())
    assert (source.path, source.framing.kind, sink.inputs) == ("0/sources/0", "u32be", ("0/steps/1",))
    assert split.state is None
    assert count.state is not None
    assert {b"a", b"z"} <= set(count.state.key.values)
    assert topology.component("main", "0/steps/1/state") is not None


KAFKA_SINK = {
    "path": "0/sinks/0", "name": "out", "kind": "kafka", "topic": "t", "brokers": ["h:1"], "options": {},
    "inputs": ["0/steps/1"], "worker": "main",
}  # fmt: skip
SHAPES = {
    "a text for a number that is fixed": (
        put("workers", 0, "protocol_version", "1"),
        'T102 "1" is not known here\n  at /workers/0/protocol_version\n  fix: write 1',
    ),
    "not a boolean": (
        put("pipelines", 0, "sinks", 0, {**KAFKA_SINK, "exactly_once": "yes"}),
        'T102 "yes" is not true or false\n  at /pipelines/0/sinks/0/exactly_once\n'
        "  fix: write true or false: whether readers of committed records see each message exactly once: written in "
        "transactions; absent: at least once",
    ),
    "misspelt property": (
        put("pipelines", 0, "nmae", "x"),
        'T102 property "nmae" is not known\n  at /pipelines/0/nmae\n  fix: remove it; known are "name", "sources", '
        '"steps", "sinks"',
    ),
    "wrong type": (
        put(*STEP, "name", 7),
        "T102 7 is not a string\n  at /pipelines/0/steps/0/name\n  fix: write a string: name that the user gave the computation",  # noqa: E501
    ),
    "fraction": (
        put(*SOURCE, "port", 1.5),
        "T102 1.5 is not an integer\n  at /pipelines/0/sources/0/port\n  fix: write an integer: TCP port; 0 lets the system choose one",  # noqa: E501
    ),
    "misspelt kind": (
        put(*STEP, "kind", "compuation"),
        'T102 "compuation" is not known here; did you mean "computation"?\n  at /pipelines/0/steps/0/kind\n  fix: write '  # noqa: E501
        'one of "computation", "computation_multi", "state_computation", "state_computation_multi", "key_by", '
        '"collect", "window", "output"',
    ),
    "framing": (
        put(*SOURCE, "framing", "kind", "u33be"),
        'T102 "u33be" is not known here; did you mean "u32be"?\n  at /pipelines/0/sources/0/framing/kind\n  fix: write one '  # noqa: E501
        'of "u8", "u16be", "u16le", "u32be", "u32le", "u64be", "u64le", "newline", "worker"',
    ),
    "codec": (
        put(*STEP, "codec", "jsn"),
        'T102 "jsn" is not known here; did you mean "json"?\n  at /pipelines/0/steps/0/codec\n  fix: write one of '
        '"native", "bytes", "string", "int64", "float64", "json", "protobuf:google.protobuf.Struct"',
    ),
    "protobuf without a name": (
        put(*SOURCE, "codec", "protobuf:"),
        'T102 "protobuf:" is not known here\n  at /pipelines/0/sources/0/codec\n  fix: write one of '
        '"native", "bytes", "string", "int64", "float64", "json", "protobuf:google.protobuf.Struct"',
    ),
    "framing as a text": (
        put(*SOURCE, "framing", "u32be"),
        'T102 "u32be" is not usable here\n  at /pipelines/0/sources/0/framing\n'
        '  fix: expected: how the byte stream is cut into messages, e.g. {"kind": "u32be"}',
    ),
    "framing without kind": (
        put(*SOURCE, "framing", {}),
        'T102 property "kind" is missing\n  at /pipelines/0/sources/0/framing\n  fix: add "kind": one of '
        '"u8", "u16be", "u16le", "u32be", "u32le", "u64be", "u64le", "newline", "worker"',
    ),
    "framing without length": (
        put(*SOURCE, "framing", {"kind": "worker"}),
        'T102 property "header_bytes" is missing\n  at /pipelines/0/sources/0/framing\n  fix: add "header_bytes": length of the header in bytes',  # noqa: E501
    ),
    "final newline": (
        put(*STEP, "name", "a\n"),
        'T102 "a\\n" is not usable here\n  at /pipelines/0/steps/0/name\n  fix: expected: name that the user gave the computation, e.g. "Count Words"',  # noqa: E501
    ),
    "input": (
        put(*STEP, "inputs", ["0/source/0"]),
        'T102 "0/source/0" is not usable here\n  at /pipelines/0/steps/0/inputs/0\n'
        '  fix: expected: path of a source or a step, e.g. "0/steps/1"',
    ),
    "input twice": (
        put(*STEP, "inputs", ["0/sources/0", "0/sources/0"]),
        "T102 the item occurs twice in the list\n  at /pipelines/0/steps/0/inputs/1\n  fix: list it once",
    ),
    "empty list": (
        put(*STEP, "inputs", []),
        "T102 the list is empty\n  at /pipelines/0/steps/0/inputs\n  fix: give at least 1 item",
    ),
    "empty text": (
        put("name", ""),
        "T102 the text is empty\n  at /name\n  fix: write at least 1 character",
    ),
    "no base64": (
        put(*STATE, "key", "values", [{"base64": "Y"}]),
        'T102 {"base64": "Y"} is not a key; Invalid base64-encoded string: number of data characters (1) cannot be 1 more '  # noqa: E501
        "than a multiple of 4\n  at /pipelines/0/steps/1/state/key/values/0\n  fix: write standard base64 with padding",
    ),
    "key": (
        put(*STATE, "key", "values", [None]),
        "T102 null is not usable here\n  at /pipelines/0/steps/1/state/key/values/0\n  fix: expected: a key: text stands for "  # noqa: E501
        'its UTF-8 bytes, an integer for its 8 bytes big-endian, anything else is in base64, e.g. "AAPL"',
    ),
    "state without kind": (
        put(*STEP, "state", WORD_COUNT["pipelines"][0]["steps"][1]["state"]),
        'T102 a step of kind "computation_multi" has no state\n  at /pipelines/0/steps/0/state\n'
        '  fix: remove it, or write the kind "state_computation_multi"',
    ),
    "state of messages' keys without kind": (
        put(*STEP, "state", {"name": "x", "codec": "native", "key": {"kind": "message"}}),
        'T102 a step of kind "computation_multi" has no state\n  at /pipelines/0/steps/0/state\n'
        '  fix: remove it, or write the kind "state_computation_multi"',
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_text_of_shape_findings(name: str) -> None:
    change, expected = SHAPES[name]
    text = "\n".join(line.partition("  (declared in")[0] for line in changed(change).splitlines())
    assert text == expected


def test_a_missing_property_beside_a_misspelt_one_is_one_finding() -> None:
    def change(document: Any) -> None:
        document["pipelines"][0]["nmae"] = document["pipelines"][0].pop("name")

    assert changed(change) == (
        'T102 property "nmae" is not known; did you mean "name"?\n  at /pipelines/0/nmae\n  fix: write "name"'
    )


def test_several_shape_and_meaning_findings_come_together_sorted_by_pointer() -> None:
    def change(document: Any) -> None:
        put(*SOURCE, "port", -1)(document)
        put(*STEP, "worker", "mian")(document)
        put("name", "e\u0301")(document)

    lines = [line for line in changed(change).splitlines() if not line.startswith("  fix")]
    assert lines == [
        'T210 application name "e\u0301" is not usable; it is not in Unicode form NFC',
        "  at /name",
        "T102 -1 is too small",
        "  at /pipelines/0/sources/0/port  (declared in app.py:70)",
        'T213 "0/steps/0" runs on worker "mian", which is not in the document; did you mean "main"?',
        "  at /pipelines/0/steps/0/worker",
    ]


def two_pipelines(change: Callable[[Any], object]) -> Callable[[Any], None]:
    """Add a copy of the pipeline as the second one, change it."""

    def both(document: Any) -> None:
        text = json.dumps(document["pipelines"][0]).replace('"0/', '"1/')
        second = json.loads(text)
        second["name"] = "second"
        second["sources"][0]["port"] += 1
        document["pipelines"].append(second)
        components = json.loads(json.dumps(document["workers"][0]["components"]).replace('"0/', '"1/'))
        for component in components:
            component |= {"file": "app.py", "line": 7}
        document["workers"][0]["components"] += components
        change(document)

    return both


MEANINGS = {
    "T203": (
        two_pipelines(put("pipelines", 1, "name", WORD_COUNT["pipelines"][0]["name"])),
        'T203 pipeline "Split and Count" is declared twice\n  at /pipelines/1/name  (declared in app.py:7)\n'
        "  fix: remove one of the two, or give it another name",
    ),
    "T204": (
        put("pipelines", 0, "sinks", []),
        'T204 application "Word Count Application" has no sink\n  at /pipelines\n'
        "  fix: end each pipeline with to_sink or done, and at least one with to_sink (Go: To, ToSink or Done)",
    ),
    "T205": (
        two_pipelines(lambda document: document["workers"][0]["components"][-2].update(symbol="Other")),
        'T205 state "word totals" is declared with {first} and with Other\n  at /pipelines/1/steps/1/state  '
        "(declared in app.py:7)\n  fix: {one}",
    ),
    "T205 of a shape": (
        two_pipelines(lambda document: document["workers"][0]["components"][-2].update(shape={"": "other.Totals"})),
        'T205 state "word totals" is declared with {first} and with {first}\n  at /pipelines/1/steps/1/state  '
        "(declared in app.py:7)\n  fix: {one}",
    ),
    "T203 of a key": (
        put(*STATE, "key", "values", ["a", {"base64": "YQ=="}]),
        'T203 key {"base64": "YQ=="} of state "word totals" is declared twice\n  at /pipelines/0/steps/1/state/key/values/1\n'  # noqa: E501
        "  fix: remove one of the two, or give it another key",
    ),
    "T210": (
        lambda document: document["workers"].append(copy.deepcopy(document["workers"][0])),
        'T210 worker name "main" is not usable; another worker has it\n  at /workers/1/name\n'
        "  fix: use 1 to 200 characters without control characters, in Unicode form NFC",
    ),
    "T211": (
        put(*SOURCE, "host", "local host"),
        'T211 source address "local host" is not usable; no host has such characters\n  at /pipelines/0/sources/0/host\n'  # noqa: E501
        "  fix: give HOST:PORT with a port of at most 65535",
    ),
    "T211 with a port": (
        put(*SOURCE, "host", "127.0.0.1:7010"),
        'T211 source address "127.0.0.1:7010" is not usable; the port belongs into property "port"\n'
        "  at /pipelines/0/sources/0/host\n  fix: give HOST:PORT with a port of at most 65535",
    ),
    "T213": (
        put(*STEP, "inputs", ["0/sources/3"]),
        'T213 "0/steps/0" takes its input from "0/sources/3", which is not in the document; did you mean "0/sources/0"?\n'  # noqa: E501
        "  at /pipelines/0/steps/0/inputs/0\n"
        "  fix: correct it there, or emit the document again with `wallaroo emit APP`",
    ),
    "T213 of a loop": (
        put(*STEP, "inputs", ["0/steps/1"]),
        'T213 "0/steps/0" is in a loop: 0/steps/0 → 0/steps/1 → 0/steps/0; a step may only read what comes before it\n'
        "  at /pipelines/0/steps/0/inputs\n"
        "  fix: correct it there, or emit the document again with `wallaroo emit APP`",
    ),
    "T213 of a path": (
        put(*STEP, "path", "0/steps/7"),
        'T213 "0/steps/7" is not the position; expected "0/steps/0"\n  at /pipelines/0/steps/0/path\n'
        "  fix: correct it there, or emit the document again with `wallaroo emit APP`",
    ),
    "T205 of keys": (
        two_pipelines(put("pipelines", 1, "steps", 1, "state", "key", "values", ["zebra"])),
        'T205 state "word totals" is declared with {keys}, others are dead letters and with '
        'keys of kind "partition", ["zebra"], others are dead letters\n'
        "  at /pipelines/1/steps/1/state/key  (declared in app.py:7)\n  fix: {one}",
    ),
    "T203 of an address": (
        two_pipelines(put("pipelines", 1, "sources", 0, "port", WORD_COUNT["pipelines"][0]["sources"][0]["port"])),
        'T203 address {address} (of sources "Split and Count" and "Split and Count") is declared twice\n  at '
        "/pipelines/1/sources/0/port  (declared in app.py:7)\n  fix: remove one of the two, or give it another address",
    ),
    "T213 of a worker": (
        put(*STEP, "worker", "other"),
        'T213 "0/steps/0" runs on worker "other", which is not in the document\n  at /pipelines/0/steps/0/worker\n'
        "  fix: correct it there, or emit the document again with `wallaroo emit APP`",
    ),
}


@pytest.mark.parametrize("code", MEANINGS)
def test_text_of_meaning_findings(code: str) -> None:
    change, expected = MEANINGS[code]
    source = WORD_COUNT["pipelines"][0]["sources"][0]
    components = {part["path"]: part["symbol"] for part in WORD_COUNT["workers"][0]["components"]}
    rule = WORD_COUNT["pipelines"][0]["steps"][1]["state"]["key"]
    keys = f'keys of kind "{rule["kind"]}", {shown_json(rule["values"])}'
    values = {
        "{keys}": keys,
        "{one}": "use one state class, list of keys and ttl for one state name, each timer in one step, or two names",
        "{first}": components.get("0/steps/1/state", ""),
        "{address}": f"{source['host']}:{source['port']}",
    }
    for name, value in values.items():
        expected = expected.replace(name, value)
    lines = [
        line if "app.py:7)" in line else line.partition("  (declared in")[0] for line in changed(change).splitlines()
    ]
    assert "\n".join(lines) == expected


def test_a_finding_shows_the_line_that_the_front_end_recorded() -> None:
    def change(document: Any) -> None:
        component = next(part for part in document["workers"][0]["components"] if part["path"] == "0/steps/0")
        component |= {"file": "word_count.py", "line": 31}
        put(*STEP, "inputs", ["0/sources/9"])(document)

    assert "  at /pipelines/0/steps/0/inputs/0  (declared in word_count.py:31)" in changed(change)


NOT_JSON = {
    b"{": "expecting property name enclosed in double quotes at line 1, column 2",
    b"\xff": "byte 0 is not UTF-8",
    b'{"a": NaN}': "NaN is not a JSON number",
    b'{"a": 1, "a": 2}': 'key "a" occurs twice in one object',
    b"[" * 100_000: "it is nested too deeply",
    b'{"topology_version": 1, "name": "\\ud800"}': "a string has half of a surrogate pair",
}


@pytest.mark.parametrize("data", NOT_JSON, ids=NOT_JSON.values())
def test_what_is_not_json(data: bytes) -> None:
    with pytest.raises(RunError) as caught:
        load(data)
    fix = "correct it there, or emit it again with `wallaroo emit APP`"
    assert str(caught.value) == f"T101 the document is not JSON; {NOT_JSON[data]}\n  fix: {fix}"


@pytest.mark.parametrize("version", [2, "1", 1.0, True])
def test_another_version_is_the_only_finding(version: Any) -> None:
    shown = json.dumps(version)
    assert changed(put("topology_version", version)) == (
        f"T103 topology_version {shown} is not known; this runtime reads version 1\n  at /topology_version\n"
        "  fix: emit the topology with an SDK of this release"
    )


def test_a_document_beyond_the_limit_is_not_parsed() -> None:
    size = MAX_DOCUMENT_BYTES + 1
    with pytest.raises(RunError) as caught:
        load(bytes(size))
    assert str(caught.value) == (
        f"T104 the document has {size} bytes; at most {MAX_DOCUMENT_BYTES} are possible\n  fix: split the application"
    )
