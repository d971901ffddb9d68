"""A sink that goes on at any place of its output: each message is counted once, empty ones too."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from wallaroo.message.frame import encode_frame
from wallaroo_runtime.egress.feed import Feed
from wallaroo_runtime.egress.kafka_sink import records_of
from wallaroo_runtime.storage.outbox.live import OUTPUT, Entry
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.position import SinkPosition

PORT = 3
FRAMES = st.lists(st.lists(st.sampled_from([b"", b"", b"a", b"bcd"]), min_size=1, max_size=6), min_size=1, max_size=4)


@settings(deadline=None, max_examples=50)
@given(FRAMES, st.integers(0, 1 << 32))
@example([[b"", b"bcd"]], 0)
def test_messages_and_bytes_are_counted_once(frames: list[list[bytes]], seed: int) -> None:
    random = Random(seed)
    with TemporaryDirectory() as folder:
        outbox = Path(folder) / "outbox"
        outbox.mkdir()
        live = LiveLog(outbox, Path(folder), segment_bytes=2000)
        for number, values in enumerate(frames):
            content = encode_frame(values, port=PORT, sequence=10 * number)
            live.append(Entry(OUTPUT, PORT, sequence=10 * number + len(values) - 1, count=1, content=content))
        position, sent = deliver(outbox, random)
        live.close()
    assert sent == b"".join(value for values in frames for value in values)
    assert (position.messages, position.live_messages) == (sum(map(len, frames)),) * 2


@settings(deadline=None, max_examples=50)
@given(FRAMES, st.integers(0, 1 << 32))
def test_records_are_written_once(frames: list[list[bytes]], seed: int) -> None:
    """Kafka takes pieces whole: with keys, from the first message that has not left, also in a run in milliseconds."""
    random = Random(seed)
    skips = [random.randrange(len(values)) for values in frames]
    with TemporaryDirectory() as folder:
        outbox = Path(folder) / "outbox"
        outbox.mkdir()
        live = LiveLog(outbox, Path(folder), segment_bytes=2000)
        for number, (values, skip) in enumerate(zip(frames, skips, strict=True)):
            content = encode_frame(values, keys=[b"%d" % number], key_indexes=[0] * len(values), port=PORT)
            live.append(Entry(OUTPUT, PORT, skip=skip, sequence=10 * number, count=1, content=content))
        feed, found, position = Feed(outbox, PORT, SinkPosition()), [], SinkPosition()
        while pieces := feed.several(random.randint(1, 9)):
            for part in records_of(pieces, are_whole=False):
                found += zip(part.keys, part.values, strict=True)
            position = pieces[-1].after
        feed.close()
        live.close()
    expected = [
        (b"%d" % number, value)
        for number, (values, skip) in enumerate(zip(frames, skips, strict=True))
        for value in values[skip:]
    ]
    assert found == expected
    assert position.messages == len(expected)


def deliver(outbox: Path, random: Random) -> tuple[SinkPosition, bytes]:
    """Deliver with breaks in the middle of pieces; returns the last position, and what was sent up to it."""
    position, sent = SinkPosition(), b""
    for _ in range(200):
        feed = Feed(outbox, PORT, position)
        while (piece := feed.next()) is not None:
            assert piece.before.total_bytes == len(sent)
            cut = random.random() < 0.6
            position = piece.position(random.randint(0, len(piece.data))) if cut else piece.after
            sent += piece.data[: position.total_bytes - piece.before.total_bytes]
            if cut:
                break
        feed.close()
        if piece is None:
            return position, sent
    message = "the end was never reached"
    raise AssertionError(message)
