"""Declarations: what is right gives the document, what is wrong gives every finding at once."""

import struct
from collections.abc import Callable
from typing import Any

import pytest

import wallaroo
from wallaroo import ApplicationBuilder, TCPSinkConfig, TCPSourceConfig, WallarooParameterError
from wallaroo.emit.topology import topology


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs: bytes) -> bytes:
    return bs


@wallaroo.encoder
def encode(data: Any) -> Any:
    return data


@wallaroo.computation("pass")
def same(data: Any) -> Any:
    return data


@wallaroo.state_computation("keep")
def keep(data: Any, state: Any) -> Any:
    return data, True


@wallaroo.key_extractor
def a_key(data: Any) -> Any:
    return data


@wallaroo.partition
def key(data: Any) -> Any:
    return data


class Keep:
    def name(self) -> str:
        return "keep"

    def compute(self, data: Any, state: Any) -> Any:
        return data, True


class State:
    pass


def plain(data: Any) -> Any:
    return data


def source(port: Any = "7010", host: Any = "127.0.0.1", decoder: Any = decode) -> TCPSourceConfig:
    return TCPSourceConfig(host, port, decoder)


def sink(port: Any = "7002", encoder: Any = encode) -> TCPSinkConfig:
    return TCPSinkConfig("127.0.0.1", port, encoder)


def begin(**options: Any) -> ApplicationBuilder:
    return ApplicationBuilder("app").new_pipeline("one", source(**options))


def wrong(value: Any) -> Any:
    """Return a component whose function takes one parameter too many."""

    @wallaroo.computation("add")
    def add(data: Any, more: Any) -> Any:
        return data

    return add


class NoMethods:
    pass


class OddHeader:
    def header_length(self) -> int:
        return 65

    def payload_length(self, bs: bytes) -> int:
        return 0

    def decode(self, bs: bytes) -> Any:
        return bs


@wallaroo.partition
def list_key(data: Any) -> list[str]:
    return ["a"]


class NeedsArgument:
    def __init__(self, size: int) -> None:
        self.size = size


END = "end each pipeline with to_sink or done, and at least one with to_sink (Go: To, ToSink or Done)"
CASES: list[tuple[str, Callable[[], Any], list[str]]] = [
    (
        "arity of a decorated function",
        lambda: begin().to(wrong(0)).to_sink(sink()),
        ['T202 computation "add": wrong.add takes 2 parameters; expected 1 / declare it as `def add(data)`'],
    ),
    (
        "arity of a state class",
        lambda: begin().to_stateful(keep, NeedsArgument, "s").to_sink(sink()),
        [
            'T202 state class "NeedsArgument": NeedsArgument takes 1 parameter; expected 0 / '
            "declare it as `def __init__(self)`"
        ],
    ),
    (
        "a plain function",
        lambda: begin().to(plain).to_sink(sink()),
        [
            "T207 to: parameter computation is plain, a plain function; expected a decorated one / "
            'decorate it with @wallaroo.computation("name")'
        ],
    ),
    (
        "plain functions everywhere",
        lambda: (
            ApplicationBuilder("app")
            .new_pipeline("one", source(decoder=plain))
            .to_state_partition(plain, State, "s", plain)
            .to_sink(sink(encoder=plain))
        ),
        [
            "T207 to_sink: parameter encoder is plain, a plain function; expected "
            "a decorated one / decorate it with @wallaroo.encoder",
            "T207 new_pipeline: parameter decoder is plain, a plain function; expected "
            "a decorated one / decorate it with "
            "@wallaroo.decoder(header_length, length_fmt)",
            "T207 to_state_partition: parameter computation is plain, a plain function; expected a decorated one / "
            'decorate it with @wallaroo.state_computation("name")',
            "T207 to_state_partition: parameter partition_function is plain, a plain function; expected "
            "a decorated one / decorate it with @wallaroo.partition",
        ],
    ),
    (
        "wrong parameters",
        lambda: begin().to(5).to(keep).to_stateful(keep, None, "s").to_sink(5),  # type: ignore[arg-type]
        [
            "T207 to_sink: parameter sink_config is 5; expected a sink config, e.g. TCPSinkConfig / "
            "pass a sink config, e.g. TCPSinkConfig",
            "T207 to: parameter computation is 5; expected a computation / "
            'pass a function decorated with @wallaroo.computation("name"), or an object of a class',
            "T207 to: parameter computation is a state_computation; expected a computation / "
            'decorate keep with @wallaroo.computation("name"), or use to_state_partition',
            "T207 to_stateful: parameter state_class is None; expected a class, or an object with build() / "
            "pass a class, or an object with build()",
        ],
    ),
    (
        "decorated for another place",
        lambda: begin().to(a_key).to(encode).to_sink(sink()),  # type: ignore[arg-type]
        [
            "T207 to: parameter computation is a key_extractor; expected a computation / "
            'decorate a_key with @wallaroo.computation("name"), or use key_by',
            "T207 to: parameter computation is an encoder; expected a computation / "
            'decorate encode with @wallaroo.computation("name")',
        ],
    ),
    (
        "a partition function of another type",
        lambda: begin().to_state_partition(keep, State, "s", list_key).to_sink(sink()),
        [
            'T208 state "s": the partition function of list_key returns list; expected str, bytes or int / '
            "return str, bytes or int (Go: []byte or uint64)"
        ],
    ),
    (
        "keys",
        lambda: begin().to_state_partition(keep, State, "s", key, ["a", b"a", 1.5, -1, None, {}]).to_sink(sink()),
        [
            'T207 to_state_partition: parameter partition_keys[4] of state "s" is None (NoneType); '
            "expected str, bytes or numbers, or tuples of them / pass str, bytes or numbers, or tuples of them",
            'T207 to_state_partition: parameter partition_keys[5] of state "s" is {} (dict); '
            "expected str, bytes or numbers, or tuples of them / pass str, bytes or numbers, or tuples of them",
        ],
    ),
    (
        "names",
        lambda: ApplicationBuilder("").new_pipeline("e\u0301", source()).to_sink(sink()),
        [
            "T210 application name '' is not usable; it has 0 characters / "
            "use 1 to 200 characters without control characters, in Unicode form NFC",
            "T210 pipeline name 'e\u0301' is not usable; it is not in Unicode form NFC / "
            "use 1 to 200 characters without control characters, in Unicode form NFC",
        ],
    ),
    (
        "addresses",
        lambda: begin(port="x").to_sink(sink("65536")),
        [
            "T211 sink address '127.0.0.1:65536' is not usable; port '65536' is not a number of 0 to 65535 / "
            "give HOST:PORT with a port of at most 65535",
            "T211 source address '127.0.0.1:x' is not usable; port 'x' is not a number of 0 to 65535 / "
            "give HOST:PORT with a port of at most 65535",
        ],
    ),
    (
        "a step before the first pipeline",
        lambda: ApplicationBuilder("app").to(same).new_pipeline("one", source()).to_sink(sink()),
        ["T212 to cannot follow ApplicationBuilder; no pipeline is open / begin a pipeline with new_pipeline first"],
    ),
    (
        "a step after the sink",
        lambda: begin().to_sink(sink()).to(same),
        ["T212 to cannot follow to_sink; the pipeline has ended / begin a pipeline with new_pipeline first"],
    ),
    (
        "open pipelines",
        lambda: begin().to(same).new_pipeline("two", source("7011")).to_sink(sink()),
        ['T204 pipeline "one" has no end after "pass" / ' + END],
    ),
    (
        "missing methods",
        lambda: begin(decoder=NoMethods()).to(NoMethods).to_sink(sink(encoder=NoMethods())),
        [
            "T223 encoder NoMethods has no method encode / define `def encode(self, data)`",
            "T223 decoder NoMethods has no method header_length / define `def header_length(self)`",
            "T223 decoder NoMethods has no method payload_length / define `def payload_length(self, bs)`",
            "T223 decoder NoMethods has no method decode / define `def decode(self, bs)`",
            "T223 computation NoMethods has no method compute / define `def compute(self, data)`",
            "T223 computation NoMethods has no method name / define `def name(self)`",
        ],
    ),
    (
        "header length",
        lambda: begin(decoder=OddHeader()).to_sink(sink()),
        [
            'T207 source "one": parameter header_length is 65; expected 1 to 64 bytes / '
            "return the number of bytes that stand before each payload"
        ],
    ),
]


@pytest.mark.parametrize(("declare", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_findings(declare: Callable[[], ApplicationBuilder], expected: list[str]) -> None:
    with pytest.raises(WallarooParameterError) as caught:
        declare().build()
    found = [f"{finding.code} {finding.message} / {finding.fix}" for finding in caught.value.diagnostics]
    assert found == expected
    assert all(finding.file.endswith("test_builder.py") and finding.line for finding in caught.value.diagnostics)
    assert all(finding.pointer for finding in caught.value.diagnostics)


def test_a_finding_names_pointer_file_and_line() -> None:
    with pytest.raises(WallarooParameterError) as caught:
        begin().to(wrong(0)).to_sink(sink()).build()
    line = wrong.__code__.co_firstlineno + 4
    assert str(caught.value).splitlines()[1].strip().startswith("at /pipelines/0/steps/0  (declared in ")
    assert str(caught.value).splitlines()[1].endswith(f"test_builder.py:{line})")


def document(builder: ApplicationBuilder) -> dict[str, Any]:
    return topology(builder.build(), "no_such", "app.py", [])


def state_key(builder: ApplicationBuilder) -> Any:
    return document(builder.to_sink(sink()))["pipelines"][0]["steps"][0]["state"]["key"]


def test_lists_are_closed_for_classes_and_hints_for_decorators() -> None:
    assert state_key(begin().to_state_partition(keep, State, "s", key, ["a"]))["unknown"] == "create"
    assert state_key(begin().to_state_partition(Keep(), State, "s", key, ["a"]))["unknown"] == "dead_letter"
    assert state_key(begin().to_state_partition(Keep, State, "s", key))["unknown"] == "create"
    closed = begin().to_state_partition(keep, State, "s", key, ["a"], unknown_keys="dead_letter")
    assert state_key(closed) == {"kind": "partition", "values": ["a"], "unknown": "dead_letter"}
    assert state_key(begin().to_state_partition_u64(keep, State, "s", key, [7, 2**64 - 1]))["values"] == [7, 2**64 - 1]
    assert state_key(begin().to_stateful(keep, state_builder=wallaroo.StateBuilder(State), state_name="s")) == {
        "kind": "single"
    }


def test_to_sinks_alone_is_an_application() -> None:
    found = document(begin().to(same).to_sinks([sink(), sink("7003")]))["pipelines"][0]["sinks"]
    assert [(item["path"], item["port"], item["inputs"]) for item in found] == [
        ("0/sinks/0", 7002, ["0/steps/0"]),
        ("0/sinks/1", 7003, ["0/steps/0"]),
    ]


def test_pipelines_may_share_a_state() -> None:
    builder = begin().to_state_partition(keep, State, "s", key, ["a"]).to_sink(sink())
    builder.new_pipeline("two", source("7011")).to_state_partition(keep, State, "s", key).done()
    names = [line["steps"][0]["state"]["name"] for line in document(builder)["pipelines"]]
    assert names == ["s", "s"]


def test_components_name_their_declarations() -> None:
    builder = begin().to_state_partition(Keep(), State, "s", key).to_sink(sink())
    found = [(item["path"], item["symbol"]) for item in document(builder)["workers"][0]["components"]]
    assert found == [
        ("0/sources/0", "decode"),
        ("0/steps/0", "Keep"),
        ("0/steps/0/partition", "key"),
        ("0/steps/0/state", "State"),
        ("0/sinks/0", "encode"),
    ]


@pytest.mark.parametrize(
    ("length", "fmt", "kind"),
    [
        (1, "B", "u8"),
        (2, ">H", "u16be"),
        (2, "<H", "u16le"),
        (4, "<I", "u32le"),
        (8, ">Q", "u64be"),
        (8, "<Q", "u64le"),
    ],
)
def test_framing_is_found(length: int, fmt: str, kind: str) -> None:
    decoder = wallaroo.decoder(length, fmt)(lambda bs: bs)
    assert document(begin(decoder=decoder).to_sink(sink()))["pipelines"][0]["sources"][0]["framing"] == {"kind": kind}


@pytest.mark.parametrize(("length", "fmt"), [(4, ">i"), (3, "xxB"), (8, ">II")])
def test_other_framing_is_the_workers(length: int, fmt: str) -> None:
    decoder = wallaroo.decoder(length, fmt)(lambda bs: bs)
    framing = document(begin(decoder=decoder).to_sink(sink()))["pipelines"][0]["sources"][0]["framing"]
    assert framing == {"kind": "worker", "header_bytes": length}


def test_payload_length_gets_exactly_the_header() -> None:
    seen = set()

    class Decoder(OddHeader):
        def header_length(self) -> int:
            return 4

        def payload_length(self, bs: bytes) -> int:
            seen.add((type(bs), len(bs)))
            return int(struct.unpack(">I", bs)[0])

    document(begin(decoder=Decoder()).to_sink(sink()))
    assert seen == {(bytes, 4)}
