"""Components that programs offer to each other: declared, emitted, and run by the worker."""

import textwrap
from pathlib import Path
from typing import Any

import pytest
from call_case import attempt

import wallaroo
from wallaroo.emit.program import load
from wallaroo.message.frame import KEYS, FrameError, encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage

LIBRARY = """
import wallaroo


@wallaroo.computation("double")
def double(data):
    return None if data == 0 else 2 * data


class Total:
    n = 0


@wallaroo.state_computation("total", state=Total)
def total(data, state):
    state.n += data
    return state.n


def application_setup(args):
    return wallaroo.build_library(
        [
            wallaroo.offer(total, input="int64", output="int64"),
            wallaroo.offer(double, input="int64", output="int64"),
        ]
    )
"""
USER = """
import wallaroo


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return int(bs)


@wallaroo.key_extractor
def parity(number):
    return str(number % 2)


@wallaroo.encoder
def encode(number):
    return "%d\\n" % number


def application_setup(args):
    maths = wallaroo.other_program("maths", "maths.py")
    numbers = wallaroo.source("numbers", wallaroo.TCPSourceConfig("127.0.0.1", "7010", decode))
    doubled = numbers.to(maths.computation("double", input="int64", output="int64")).key_by(parity)
    totals = doubled.to(maths.state_computation("total", input=INPUT, output="int64"))
    return wallaroo.build_application("user", totals.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode)))
"""


def program(tmp_path: Path, name: str, text: str) -> Any:
    file = tmp_path / f"{name}.py"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return load(str(file), [])


@pytest.fixture
def maths(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    return program(tmp_path, f"maths_{abs(hash(request.node.name))}", LIBRARY)


def test_a_library_says_what_it_offers(maths: Any) -> None:
    offered = maths.to_json()["library"]
    assert [(each["name"], each["kind"], each["input"], each["output"]) for each in offered["components"]] == [
        ("double", "computation", "int64", "int64"), ("total", "state_computation", "int64", "int64"),
    ]  # fmt: skip
    assert offered["components"][0]["symbol"] == "double" and offered["components"][0]["line"] == 6
    assert offered["worker"]["name"] == "main" and offered["worker"]["components"] == []


def test_a_program_names_components_of_another(tmp_path: Path) -> None:
    result = program(tmp_path, "user_of_maths", USER.replace("INPUT", '"int64"')).to_json()
    assert result["programs"] == {"maths": "maths.py"}
    (pipeline,) = result["topology"]["pipelines"]
    assert pipeline["sources"][0]["codec"] == "int64"
    steps = [(step["worker"], step.get("component"), step["codec"]) for step in pipeline["steps"]]
    assert steps == [("maths", "double", "int64"), ("main", None, "int64"), ("maths", "total", "int64")]
    assert [worker["name"] for worker in result["topology"]["workers"]] == ["main"]


def test_codecs_that_do_not_fit(tmp_path: Path) -> None:
    two = USER.replace("numbers.to(", 'numbers.to(maths.computation("halve", output="json")).to(')
    with pytest.raises(wallaroo.WallarooParameterError) as caught:
        program(tmp_path, "misfit", two.replace("INPUT", '"int64"'))
    assert str(caught.value).splitlines()[0] == (
        'T261 step "double" takes messages in codec "int64"; "halve" gives "json"'
    )


@pytest.mark.parametrize(
    ("declare", "text"),
    [
        (lambda: wallaroo.other_program("main", "a.py"), "worker is 'main'; expected a name other than \"main\""),
        (lambda: wallaroo.other_program("a", ""), "target is ''; expected a file or directory"),
        (
            lambda: wallaroo.other_program("a", "b").computation("c", input="xml"),
            'input is \'xml\'; expected one of "bytes", "string", "int64", "float64", "json"',
        ),
        (lambda: wallaroo.build_library([]), "offers is []; expected components with names of their own"),
    ],
)
def test_declarations_that_cannot_be(declare: Any, text: str) -> None:
    with pytest.raises(wallaroo.WallarooParameterError) as caught:
        declare()
    assert text in str(caught.value)


def crossing(**more: Any) -> pb.Stage:
    nodes = [
        pb.Node(path="0/sources/0", kind=pb.NODE_KIND_RECEIVE, port=7, codec="int64", keys=True, timestamps=True),
        pb.Node(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION, inputs=["0/sources/0"], component="double"),
        pb.Node(
            path="0/steps/0",
            kind=pb.NODE_KIND_SEND,
            inputs=["0/steps/0"],
            port=8,
            codec="int64",
            keys=True,
            timestamps=True,
        ),
    ]
    return pb.Stage(id="s", bucket_count=4, frame_bytes=1 << 20, nodes=nodes)


def numbers(*values: int) -> list[bytes]:
    return [value.to_bytes(8, "big", signed=True) for value in values]


def test_messages_cross_with_sequence_key_and_time(maths: Any) -> None:
    stage = Stage(maths.application, crossing())
    frame = encode_frame(
        numbers(1, 0, 3), port=7, sequence=10, timestamp_ms=100, keys=[b"a", b"b"], key_indexes=[0, 0, 1],
        sequences=[0, 1, 5], timestamps=[0, 1, 2],
    )  # fmt: skip
    (output,) = stage.run(0, frame)
    sent = read_frame(output.frame)
    assert (output.port, output.bucket, sent.values()) == (8, -1, numbers(2, 6))
    assert [sent.keys[index] for index in sent.key_indexes] == [b"a", b"b"]
    assert [sent.sequence_of(at) for at in (0, 1)] == [10, 15] and list(sent.times()) == [100, 102]
    counts = {(count.path, count.messages_in, count.messages_out) for count in stage.counts()}
    assert ("0/steps/0", 3, 2) in counts


def test_a_value_of_another_codec_is_a_dead_letter(maths: Any, kit: Any) -> None:
    stage = Stage(maths.application, crossing())
    outputs = stage.run(0, encode_frame([b"short", *numbers(4)], port=7, keys=[b"k"], key_indexes=[0, 0]))
    (letter,) = kit.letters(outputs)
    assert (letter.code, letter.path, letter.input) == ("C505", "0/sources/0", b"short")
    assert [read_frame(output.frame).values() for output in outputs if output.port == 8] == [numbers(8)]


def test_a_state_of_a_library_takes_the_codec(maths: Any) -> None:
    node = pb.Node(
        path="0/steps/2", kind=pb.NODE_KIND_STATE_COMPUTATION, port=3, state="total", state_port=3, component="total",
        codec="int64",
    )  # fmt: skip
    send = pb.Node(path="0/steps/2", kind=pb.NODE_KIND_SEND, inputs=["0/steps/2"], port=9, codec="int64")
    stage = Stage(maths.application, pb.Stage(id="s", bucket_count=1, nodes=[node, send]))
    frame = encode_frame(numbers(5, 6), port=3, keys=[b"a"], key_indexes=[0, 0], sequences=[0, 1])
    assert read_frame(frame).header.flags & KEYS
    result = attempt(stage, pb.Bucket(index=0), [frame], BucketState(stage.codec))
    assert result is not None
    (output,) = result.outputs
    assert read_frame(output.frame).values() == numbers(5, 11)


def test_a_codec_that_the_worker_does_not_have(maths: Any) -> None:
    stage = crossing()
    stage.nodes[2].codec = "xml"
    with pytest.raises(FrameError, match='has codec xml; expected one of "bytes", "string"'):
        Stage(maths.application, stage)


@pytest.mark.parametrize("value", [3, str.upper, wallaroo.key_extractor(lambda data: data)])
def test_a_wrong_offer_names_the_function_that_the_program_called(value: Any) -> None:
    with pytest.raises(wallaroo.WallarooParameterError) as caught:
        wallaroo.offer(value)
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.message.partition(":")[0]) == ("T207", "offer")
