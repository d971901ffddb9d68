"""What a gateway knows of topics without reading frames again: the same as what the frames say."""

import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo.message.frame import DEAD_LETTER_PORT, PLAIN, encode_body
from wallaroo.worker._proto import worker_pb2
from wallaroo_runtime.gateway.intake import Gathered, Intake
from wallaroo_runtime.gateway.kafka_reader import BEGINNING
from wallaroo_runtime.gateway.kafka_source import points_of
from wallaroo_runtime.gateway.source_progress import SourceProgress, point_headers
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.journal.writer import JournalWriter

TOPIC, GENERATOR = 3, 4
Step = tuple[dict[int, int], bool]  # points of a frame, and whether all before it is processed then
point = st.integers(1, 1 << 40)


def frame_of(points: dict[int, int], *, is_refused: bool) -> tuple[int, tuple[int, list[bytes]]]:
    """Return the port and content of a frame with one record of each partition, or the letter of a large record."""
    if is_refused:
        ((partition, end),) = points.items()
        origin = worker_pb2.Origin(partition=partition, offset=end - 1)
        letter = worker_pb2.DeadLetter(code="R606", port=TOPIC, origin=origin)
        return DEAD_LETTER_PORT, encode_body([letter.SerializeToString()])
    headers = point_headers(len(points), [(each, (at, points[each])) for at, each in enumerate(points)])
    return TOPIC, encode_body([b"x"] * len(points), headers=headers)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.dictionaries(st.integers(0, 3), point, min_size=1), st.booleans())),
    st.booleans(),
)
def test_what_was_noted_is_what_frames_say(steps: list[Step], has_generator: bool) -> None:
    with TemporaryDirectory() as name:
        journal = Path(name)
        generators = [GENERATOR] if has_generator else []
        writer, expected = JournalWriter(journal, segment_bytes=1), dict[int, int]()
        past = SourceProgress(journal, generators, (), [TOPIC])
        for points, is_processed in steps:
            port, (flags, parts) = frame_of(points, is_refused=len(points) == 1)
            before = writer.end.offset
            if is_processed:  # as the intake does before segments go: the frame is not written yet
                past.move(before)
                past.save()
                assert past.points[TOPIC] == expected
            base = writer.append(port, len(points), parts, 0, flags, PLAIN)
            writer.sync()
            past.note(base, {(TOPIC, partition): point for partition, point in points.items()})
            expected |= points
        end = writer.end.offset
        past.move(end)
        past.save()
        writer.close()
        assert past.points[TOPIC] == expected
        for segment in journal.glob("*.journal"):  # what is left is the file alone
            if int(segment.name.removesuffix(".journal")) < end:
                segment.unlink()
        found = SourceProgress(journal, generators, (), [TOPIC])
        assert found.points[TOPIC] == expected


@pytest.mark.parametrize("size", [1, 1 << 16])
def test_frames_in_the_journal_are_not_kept_in_memory(size: int, tmp_path: Path) -> None:
    """A journal may have gigabytes that are not processed, and a segment many small frames."""
    writer = JournalWriter(tmp_path)
    intake = Intake(writer, "never", 0.0, 1 << 40, SourceProgress(tmp_path, (), (), [TOPIC]), lambda: None)
    tracemalloc.start()
    for number in range(5000 if size == 1 else 300):
        intake.take_whole(Gathered(TOPIC, 0, 1, size, [bytes(size)], 0, PLAIN, {(TOPIC, 0): number + 1}))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 200_000
    assert not intake.close()


Start = tuple[str, str, dict[int, int]]  # id of the topic, where it is reset to, points of a frame that follows


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "a", "b"]),
            st.sampled_from(["", "start", "end"]),
            st.dictionaries(st.integers(0, 3), st.integers(0, 1 << 40)),
        )
    )
)
def test_a_topic_is_reset_once_for_each_id(starts: list[Start]) -> None:
    """Each element is a start of the gateway on the same journal."""
    with TemporaryDirectory() as name:
        journal, known, expected = Path(name), "", dict[int, int]()
        for number, (topic, reset, points) in enumerate(starts):
            writer = JournalWriter(journal, segment_bytes=1)
            past = SourceProgress(journal, (), (), [TOPIC])
            past.advance(writer.end.offset)
            first = {0: number, 1: number}
            if reset and known and topic and topic != known:
                expected = {}
            known, expected = topic or known, expected or first
            found = points_of(pb.KafkaSource(port=TOPIC, starts=first, topic_id=topic, reset=reset), past)
            assert found == {0: BEGINNING, 1: BEGINNING} | expected
            past.save()
            if points:
                headers = point_headers(len(points), [(each, (at, points[each])) for at, each in enumerate(points)])
                flags, parts = encode_body([b"x"] * len(points), headers=headers)
                writer.append(TOPIC, len(points), parts, 0, flags, PLAIN)
                writer.sync()
            expected = expected | points
            writer.close()
