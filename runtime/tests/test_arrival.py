"""Frames of one bucket in the order of arrival, whatever their messages were cut into."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from wallaroo.frame import TICK_PORT, FrameHeader, check_frame, encode_frame, read_frame, write_frame
from wallaroo_runtime.spark.arrival import FRAME_BYTES, in_order_of_arrival


class Message(NamedTuple):
    sequence: int
    port: int
    key: bytes
    value: bytes


def written(messages: list[Message]) -> bytes:
    first = messages[0].sequence
    keys = list(dict.fromkeys(message.key for message in messages))
    return encode_frame(
        [message.value for message in messages], port=messages[0].port, sequence=first, encoding=16, timestamp_ms=70,
        keys=keys, key_indexes=[keys.index(message.key) for message in messages],
        sequences=[message.sequence - first for message in messages],
        timestamps=[message.sequence - first for message in messages],
    )  # fmt: skip


def read(frames: list[bytes]) -> list[Message]:
    found = []
    for frame in map(read_frame, frames):
        assert frame.header.encoding in (0, 16)
        for at, value in enumerate(frame.values()):
            key = frame.keys[frame.key_indexes[at]]
            found.append(Message(frame.sequence_of(at), frame.header.port, key, value))
    return found


def tick(sequence: int) -> bytes:
    return write_frame(FrameHeader(TICK_PORT, 0, sequence, 0, 0, 1000 + sequence), [])


def test_frames_that_follow_each_other_stay_as_they_are() -> None:
    frames = [written([Message(0, 1, b"a", b"x"), Message(3, 1, b"b", b"y")]), written([Message(3, 2, b"a", b"z")])]
    assert in_order_of_arrival(frames) == frames
    assert in_order_of_arrival([]) == []


def test_steps_of_one_state_take_turns() -> None:
    updates = [Message(sequence, 1, b"k", b"u%d" % sequence) for sequence in (0, 2, 4, 5)]
    orders = [Message(sequence, 2, b"k", b"o%d" % sequence) for sequence in (1, 3, 6)]
    merged = read(in_order_of_arrival([written(updates), written(orders)]))
    assert [message.value for message in merged] == [b"u0", b"o1", b"u2", b"o3", b"u4", b"u5", b"o6"]
    assert merged == sorted(updates + orders)


def test_a_tick_stands_before_the_message_of_its_sequence_and_behind_the_one_before() -> None:
    many = written([Message(sequence, 1, b"k", b"%d" % sequence) for sequence in range(4)])
    found = map(check_frame, in_order_of_arrival([many, tick(2)]))
    heads = [(header.port, header.count, header.sequence) for header in found]
    assert heads == [(1, 2, 0), (TICK_PORT, 0, 2), (1, 2, 2)]


def test_times_stay_with_their_messages_and_frames_stay_small() -> None:
    large = bytes(FRAME_BYTES // 2)
    one = written([Message(0, 1, b"a", large), Message(2, 1, b"a", large), Message(3, 1, b"b", large)])
    other = written([Message(1, 1, b"b", b"")])
    frames = list(map(read_frame, in_order_of_arrival([one, other])))
    assert [frame.sequence_of(at) for frame in frames for at in range(frame.header.count)] == [0, 1, 2, 3]
    assert [time for frame in frames for time in frame.times()] == [70, 70, 72, 73]
    assert all(len(frame.data) <= FRAME_BYTES for frame in frames)


numbered = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from([b"a", b"b"])), max_size=40)


@given(numbered)
def test_any_frames_give_every_message_once_in_order(drawn: list[tuple[int, int, bytes]]) -> None:
    sequence, frames = 0, dict[int, list[Message]]()
    for number, (step, port, key) in enumerate(drawn):
        sequence += step
        frames.setdefault(port, []).append(Message(sequence, port, key, b"%d" % number))
    given_ = sorted(frames.values(), key=lambda messages: messages[0].sequence)
    merged = read(in_order_of_arrival([written(messages) for messages in given_]))
    assert sorted(merged) == sorted(message for messages in given_ for message in messages)
    assert [message.sequence for message in merged] == sorted(message.sequence for message in merged)
    for messages in given_:
        assert [message for message in merged if message.port == messages[0].port] == messages
