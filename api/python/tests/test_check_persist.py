"""`WALLAROO_CHECK_PERSIST`: a change of state that is not persisted is a dead letter."""

from typing import Any

import pytest
from call_case import attempt

import wallaroo
from wallaroo import testing
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import TEXT


class Seen:
    def __init__(self) -> None:
        self.words: list[str] = []


@wallaroo.state_computation("see")
def see(data: str, state: Seen) -> Any:
    if data != "look":
        state.words.append(data)
    return ",".join(state.words), data not in ("look", "forget")


@wallaroo.partition
def key(data: str) -> str:
    return data


@wallaroo.encoder
def encode(data: str) -> str:
    return data


def test_the_message_is_a_dead_letter_and_the_state_as_before(kit: Any) -> None:
    app = kit.build(lambda builder: builder.to_state_partition(see, Seen, "seen", key), encoder=encode)
    stage = Stage(app, kit.stage_of(app, "0/steps/0"))
    state = BucketState(stage.codec)

    def call(*words: str) -> Any:
        frame = encode_frame(
            [word.encode() for word in words], port=1, encoding=TEXT, keys=[b"k"], key_indexes=[0] * len(words)
        )
        return attempt(stage, pb.Bucket(index=0), [frame], state, checks_persist=True)

    result = call("forget", "a", "look", "forget", "b")
    assert kit.sunk(result.outputs) == [(1, b"a"), (2, b"a"), (4, b"a,b")]
    letters = kit.letters(result.outputs)
    assert [(letter.code, letter.sequence, letter.key) for letter in letters] == [("C510", 0, b"k"), ("C510", 3, b"k")]
    assert (letters[0].step, letters[0].error) == ("see", "changed the state of key 'k' and returned persist False")
    assert kit.sunk(call("look").outputs) == [(0, b"a,b")]  # on the live copy, too
    (letter,) = kit.letters(call("forget").outputs)
    assert letter.code == "C510"
    assert kit.sunk(call("look").outputs) == [(0, b"a,b")]


@wallaroo.state_computation("collect", state=Seen)
def collect(data: str, state: Seen) -> list[str]:
    state.words.append(data)
    return state.words if data != "copy" else list(state.words)


@wallaroo.computation("mark")
def mark(words: list[str]) -> str:
    words.append("mark")
    return ",".join(words)


def test_a_state_that_a_later_step_changes_is_found() -> None:
    decode, encode = wallaroo.line_decoder(bytes.decode), wallaroo.line_encoder(str)
    source = wallaroo.source("in", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode))
    line = source.key_by(wallaroo.KeyExtractor(lambda data: "k")).to(collect).to(mark)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)
    with testing.run(lambda args: wallaroo.build_application("a", line.to_sink(sink)), check_persist=True) as app:
        app.send([b"copy"])
        with pytest.raises(DiagnosticError) as caught:
            app.send([b"a"])
        assert str(caught.value).splitlines()[0] == (
            "C530 collect: a later step changed the state of key 'k' through the message that this step returned"
        )
        assert app.output() == [b"copy,mark"] and app.state("collect", "k").words == ["copy"]
