"""A live log that was damaged is refused at the start, and what a crash of real-time mode leaves is none."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.delivery import frame_of
from wallaroo_runtime.checkpoint.integrity import SparkFiles, is_commit, offsets_of
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.durable.record import pack_line
from wallaroo_runtime.egress.feed import Feed
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.outbox.check import check_outbox
from wallaroo_runtime.storage.outbox.live import (
    ENTRY_BYTES,
    OPENING,
    OUTPUT,
    Entry,
    LiveReader,
    first_offset,
    live_segments,
    whole_entries,
)
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.live_state import read_last
from wallaroo_runtime.storage.outbox.log import Published
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import SinkPosition, read_position, write_position

PORT, OTHER = 3, 4
RESULTS = 60


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give an outbox with a live log of several segments, of which the sink has got a third."""
    outbox = tmp_path_factory.mktemp("live") / "outbox"
    letters = outbox.parent / "dead-letters"
    driver = Outbox(outbox, letters)
    live = LiveLog(outbox, letters, segment_bytes=600)
    writer = {"epoch": 1, "query": "q", "batch": 0, "partition": 0, "attempt": 1}
    live.append(Entry(OPENING, content=pack_line(writer)))
    write_position(outbox, PORT, SinkPosition(), durable=True)
    for number in range(RESULTS):
        port = OTHER if number % 5 == 4 else PORT
        live.append(Entry(OUTPUT, port, -1, 0, 0, number, 1, frame_of([(number, b"%06d;" % number)], port)))
    live.sync()
    driver.publish("q", 0, [], "plan")
    feed = Feed(outbox, PORT, SinkPosition())
    for _ in range(12):
        piece = feed.next()
        assert piece is not None
    write_position(outbox, PORT, piece.after, durable=True)
    live.close()
    feed.close()
    assert len(live_segments(outbox / "live")) > 4
    check_outbox(outbox, [PORT])
    return outbox


def copied(outbox: Path, target: Path) -> Path:
    shutil.copytree(outbox.parent, target)
    return target / "outbox"


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_byte_that_changed_before_it_was_delivered_is_found(
    made: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    outbox = copied(made, tmp_path_factory.mktemp("damaged") / "c")
    position = read_position(outbox, PORT)
    end = read_last(outbox).end
    ends = {each: each.base + each.path.stat().st_size for each in live_segments(outbox / "live")}
    segment = data.draw(st.sampled_from([each for each in ends if ends[each] > position.live]))
    at = data.draw(st.integers(max(position.live, segment.base), min(ends[segment], end) - 1)) - segment.base
    content = bytearray(segment.path.read_bytes())
    content[at] ^= data.draw(st.integers(1, 255))
    segment.path.write_bytes(content)
    if is_of_another(made, segment.base + at):
        return  # that sink's check finds it
    with pytest.raises(RunError, match="R698"):
        check_outbox(outbox, [PORT])


def is_of_another(outbox: Path, offset: int) -> bool:
    """Say whether the content of an entry of another port is at an offset, which nobody reads for this one."""
    entries = [entry for segment in live_segments(outbox / "live") for entry in whole_entries(segment)]
    (entry,) = (entry for entry in entries if entry.offset <= offset < entry.end)
    is_last = entry.offset >= live_segments(outbox / "live")[-1].base
    return not is_last and entry.port != PORT and offset >= entry.offset + ENTRY_BYTES


def cut_last(outbox: Path) -> None:
    segment = live_segments(outbox / "live")[-1]
    segment.path.write_bytes(segment.path.read_bytes()[:-1])


def lose_segment(outbox: Path) -> None:
    live_segments(outbox / "live")[-2].path.unlink()


def lose_all(outbox: Path) -> None:
    shutil.rmtree(outbox / "live")


def lose_position(outbox: Path) -> None:
    (outbox / f"position-{PORT}").unlink()


def forget_messages(outbox: Path) -> None:
    position = read_position(outbox, PORT)
    write_position(outbox, PORT, SinkPosition(live=position.live, messages=3, live_messages=3), durable=True)


def run_ahead(outbox: Path) -> None:
    write_position(outbox, PORT, SinkPosition(live=1 << 30), durable=True)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut_last, "up to .* it was safe"),
        (lose_segment, "no entry begins|lacks|counts"),
        (lose_all, "its live log ends at 0; record 0 comes after"),
        (lose_position, "position-3 is missing"),
        (forget_messages, "position-3: .* of the live log: it counts 3 messages before; the log"),
        (run_ahead, "position-3 is at 1073741824 of the live log, which ends at"),
    ],
)
def test_damage_is_told(made: Path, tmp_path: Path, damage: Callable[[Path], None], reason: str) -> None:
    outbox = copied(made, tmp_path / "c")
    damage(outbox)
    with pytest.raises(RunError, match=f"R698 .*({reason})"):
        check_outbox(outbox, [PORT])


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 6), st.booleans(), st.integers(0, 3), st.booleans(), st.booleans())
def test_real_time_mode_may_lag_and_lose_what_was_not_synced(
    tmp_path_factory: pytest.TempPathFactory,
    last: int,
    is_committed: bool,
    lag: int,
    plan_torn: bool,
    commit_torn: bool,
) -> None:
    folder = tmp_path_factory.mktemp("spark")
    for name in ("offsets", "commits"):
        (folder / "spark" / name).mkdir(parents=True)
    (folder / "spark" / "metadata").write_text('{"id":"q"}')
    for batch in range(last + 1):
        (folder / f"spark/offsets/{batch}").write_text(plan(batch))
        if batch < last or is_committed:
            (folder / f"spark/commits/{batch}").write_text('v1\n{"nextBatchWatermarkMs":0}')
    committed = last if is_committed else last - 1
    recorded = max(-1, committed - lag)
    if plan_torn:
        (folder / f"spark/offsets/{last}").write_text("v1\n{")
    if commit_torn and is_committed:
        (folder / f"spark/commits/{last}").write_text("v1\n")
    published = Published("q", recorded, plan(recorded)) if recorded >= 0 else Published()
    files = SparkFiles(LocalDirectory(folder), "spark", published, is_live=True)
    end = files.check()
    planned = max((int(path.name) for path in (folder / "spark/offsets").iterdir()), default=-1)
    done = max((int(path.name) for path in (folder / "spark/commits").iterdir()), default=-1)
    assert planned in (last, last - 1) and done in (planned, planned - 1) and planned >= recorded
    assert end == ([{"journal": "0a", "offset": planned, "sequence": planned}] if planned >= 0 else [])
    for batch in range(planned + 1):
        assert offsets_of((folder / f"spark/offsets/{batch}").read_text()) is not None
    for batch in range(done + 1):
        assert is_commit((folder / f"spark/commits/{batch}").read_text())
    if not plan_torn and not commit_torn:
        assert (planned, done, files.repairs) == (last, committed, [])


def plan(batch: int) -> str:
    return "v1\n{}\n" + json.dumps({"journal": "0a", "offset": batch, "sequence": batch})


def test_micro_batches_may_not_lag(tmp_path: Path) -> None:
    for name in ("offsets", "commits"):
        (tmp_path / "spark" / name).mkdir(parents=True)
        for batch in range(3):
            content = plan(batch) if name == "offsets" else 'v1\n{"nextBatchWatermarkMs":0}'
            (tmp_path / f"spark/{name}/{batch}").write_text(content)
    (tmp_path / "spark" / "metadata").write_text('{"id":"q"}')
    with pytest.raises(RunError, match="R698"):
        SparkFiles(LocalDirectory(tmp_path), "spark", Published("q", 1, plan(1))).check()


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_reader_passes_over_segments_that_went(made: Path, tmp_path: Path, is_begun: bool) -> None:
    outbox = copied(made, tmp_path / "c")
    segments = live_segments(outbox / "live")
    reader = LiveReader(outbox, first_offset(outbox))
    if is_begun:
        entries = reader.entries()
        next(entries)
    for segment in segments[:3]:
        segment.path.unlink()
    found = [entry.offset for entry in reader.entries() if entry.offset >= segments[1].base]
    reader.close()
    expected = [entry.offset for segment in segments[3:] for entry in whole_entries(segment)]
    assert found == expected
