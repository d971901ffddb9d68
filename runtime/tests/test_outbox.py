"""The outbox: publishing once, recovery of its log, cutting it."""

import json
import os
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.delivery import frame_of
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame
from wallaroo_runtime.egress.sender import Sender
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.live import OUTPUT, Entry
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.live_state import AttemptWriter
from wallaroo_runtime.storage.outbox.log import LogReader, OutboxRecord
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import SinkPosition, other_positions, read_position, write_position
from wallaroo_runtime.storage.outbox.staging import StagedFile, StagingWriter


class Place:
    """The directories of a checkpoint."""

    def __init__(self, root: Path) -> None:
        self.root, self.outbox, self.staging = root, root / "outbox", root / "staging"
        self.attempt = 0

    def open(self, compact_bytes: int = 1 << 20) -> Outbox:
        return Outbox(self.outbox, self.root / "dead-letters", self.staging, compact_bytes=compact_bytes)

    def stage(self, batch: int, partition: int, *ports: int, query: str = "q-1") -> list[StagedFile]:
        self.attempt += 1
        writer = StagingWriter(self.staging, query, batch, partition, self.attempt)
        for port in ports:
            writer.write(port, encode_frame([b"%d/%d" % (batch, partition)], port=port))
        return writer.finish()

    def records(self) -> list[OutboxRecord]:
        reader = LogReader(self.outbox)
        try:
            return list(reader.records())
        finally:
            reader.close()

    def names(self) -> list[str]:
        return sorted(path.name for path in self.outbox.glob("*.frames"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_batch_is_published_once_in_partition_order(place: Place) -> None:
    outbox = place.open()
    files = [*place.stage(0, 1, 7, DEAD_LETTER_PORT), *place.stage(0, 0, 7, 6)]
    assert outbox.publish("q-1", 0, files)
    (record,) = place.records()
    assert [(file.partition, file.port, file.name, file.messages) for file in record.files] == [
        (0, 6, "q-1-0-0-6.frames", 1),
        (0, 7, "q-1-0-0-7.frames", 1),
        (1, 7, "q-1-0-1-7.frames", 1),
        (1, DEAD_LETTER_PORT, "q-1-0-1.frames", 1),
    ]
    assert (place.root / "dead-letters" / "q-1-0-1.frames").exists()
    assert outbox.size() == sum(path.stat().st_size for path in place.outbox.glob("*.frames"))
    before = (place.outbox / "log").read_bytes()
    for again in (outbox, place.open()):
        assert not again.publish("q-1", 0, place.stage(0, 0, 7, 6))
        assert (place.outbox / "log").read_bytes() == before
        assert list(place.staging.iterdir()) == []
        assert (again.last().query, again.last().batch) == ("q-1", 0)
        assert again.messages() == {6: 1, 7: 2, DEAD_LETTER_PORT: 1}
    assert outbox.publish("q-2", 0, place.stage(0, 0, 7, query="q-2"))


@pytest.mark.parametrize("is_new", [True, False])
def test_dead_letters_that_only_a_failed_publication_had_are_removed(
    is_new: bool, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox, folder = place.open(), place.root / "dead-letters"
    outbox.publish("q-1", 0, place.stage(0, 0, DEAD_LETTER_PORT))
    with monkeypatch.context() as patched:
        patched.setattr(Outbox, "_append", failing)
        with pytest.raises(OSError, match="full"):
            outbox.publish("q-1", 1, [*place.stage(1, 0, 7, DEAD_LETTER_PORT), *place.stage(1, 1, DEAD_LETTER_PORT)])
    outbox = place.open() if is_new else outbox
    assert outbox.publish("q-1", 1, place.stage(1, 0, 7, DEAD_LETTER_PORT))
    assert outbox.publish("q-1", 2, place.stage(2, 0, DEAD_LETTER_PORT))
    assert sorted(path.name for path in folder.iterdir()) == [f"q-1-{batch}-0.frames" for batch in range(3)]


def failing(*_: object) -> None:
    """Do as a disk that is full."""
    raise OSError(28, "full")


def test_the_line_of_a_record_is_that_of_the_architecture_document(place: Place) -> None:
    place.open().publish("q-1", 4, place.stage(4, 0, 3), "v1")
    crc32 = zlib.crc32((place.outbox / "q-1-4-0-3.frames").read_bytes())
    files = b'[{"port":3,"partition":0,"name":"q-1-4-0-3.frames","bytes":45,"messages":1,"crc32":%d}]' % crc32
    text = b'{"query":"q-1","batch":4,"files":' + files + b',"offsets":"v1"}'
    assert (place.outbox / "log").read_bytes() == b"%08x " % zlib.crc32(text) + text + b"\n"


def test_leftovers_of_other_attempts_are_removed(place: Place) -> None:
    outbox = place.open()
    place.stage(0, 0, 7)
    place.stage(1, 0, 7)
    place.stage(2, 0, 7)
    place.stage(0, 0, 7, query="q-1-0")
    outbox.publish("q-1", 1, place.stage(1, 0, 7))
    assert sorted(path.name for path in place.staging.iterdir()) == ["q-1-0-0-0-4-7.frames", "q-1-2-0-3-7.frames"]
    place.open()
    assert list(place.staging.iterdir()) == []


def test_a_torn_last_line_is_cut_at_whichever_byte_it_is_torn(place: Place) -> None:
    outbox = place.open()
    outbox.publish("q-1", 0, place.stage(0, 0, 7))
    whole = (place.outbox / "log").read_bytes()
    outbox.publish("q-1", 1, place.stage(1, 0, 7))
    longer = (place.outbox / "log").read_bytes()
    for size in range(len(whole), len(longer)):
        (place.outbox / "log").write_bytes(longer[:size])
        reopened = place.open()
        assert (place.outbox / "log").read_bytes() == whole, size
        assert reopened.publish("q-1", 1, place.stage(1, 0, 7))
        assert (place.outbox / "log").read_bytes() == longer
        assert place.names() == ["q-1-0-0-7.frames", "q-1-1-0-7.frames"]


def test_a_follower_does_not_see_a_torn_line_and_sees_what_replaces_it(place: Place) -> None:
    outbox = place.open()
    follower = LogReader(place.outbox)
    outbox.publish("q-1", 0, place.stage(0, 0, 7))
    assert [record.batch for record in follower.records()] == [0]
    with (place.outbox / "log").open("ab") as log:
        log.write(b'1234 {"que')
    assert list(follower.records()) == []
    place.open().publish("q-1", 1, place.stage(1, 0, 7))
    assert [(record.number, record.batch) for record in follower.records()] == [(1, 1)]
    follower.close()


def test_a_damaged_line_is_refused(place: Place) -> None:
    outbox = place.open()
    for batch in range(2):
        outbox.publish("q-1", batch, place.stage(batch, 0, 7))
    data = bytearray((place.outbox / "log").read_bytes())
    data[30] ^= 1
    (place.outbox / "log").write_bytes(data)
    with pytest.raises(RunError) as caught:
        place.open()
    assert str(caught.value) == (
        f"R698 outbox {place.outbox} is damaged; record 0 of its log does not fit its checksum\n"
        "  fix: restore all of the checkpoint from one backup (application.json, spark, journal and outbox belong "
        "together), or --fresh to start over; if a backup is damaged, take another one"
    )


def test_a_staged_file_of_another_length_is_refused_and_nothing_published(place: Place) -> None:
    outbox = place.open()
    good, bad = place.stage(0, 0, 7)[0], place.stage(0, 1, 7)[0]
    os.truncate(bad.path, 10)
    with pytest.raises(RunError, match=r"R698 .* has 10 bytes; expected 45"):
        outbox.publish("q-1", 0, [good, bad])
    Path(bad.path).unlink()
    with pytest.raises(RunError, match=r"R698 .* is missing"):
        outbox.publish("q-1", 0, [good, bad])
    assert (place.records(), place.names()) == ([], [])
    assert outbox.publish("q-1", 0, [good])


def test_a_publication_that_failed_half_way_is_repeated_or_forgotten(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = place.open()
    files = place.stage(0, 0, 7)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda *_: full())
        with pytest.raises(OSError, match="No space"):
            outbox.publish("q-1", 0, files)
    assert (place.records(), place.names()) == ([], ["q-1-0-0-7.frames"])
    assert outbox.publish("q-1", 0, files)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda *_: full())
        with pytest.raises(OSError, match="No space"):
            outbox.publish("q-1", 1, place.stage(1, 0, 7))
    place.open()
    assert place.names() == ["q-1-0-0-7.frames"]


def few_at_once(patch: pytest.MonkeyPatch) -> None:
    """Let the system write at most three bytes a call."""
    write, pwrite = os.write, os.pwrite
    patch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:3]))
    patch.setattr(os, "pwrite", lambda descriptor, data, at: pwrite(descriptor, bytes(data)[:3], at))


def test_a_record_is_written_whole_however_little_the_system_takes_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_at_once(monkeypatch)
    outbox = place.open()
    for batch in range(2):
        assert outbox.publish("q-1", batch, place.stage(batch, 0, 7))
    assert place.open().last().batch == 1
    assert [record.batch for record in place.records()] == [0, 1]


def test_dead_letters_are_restored_whole_however_little_the_system_takes_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.open()
    live = LiveLog(place.outbox, place.root)
    live.open(writer := AttemptWriter(1, "q", 0, 0, 1))
    content = frame_of([(0, b"a letter")], DEAD_LETTER_PORT)
    live.append(Entry(OUTPUT, DEAD_LETTER_PORT, -1, 0, 0, 0, 1, content))
    live.sync()
    live.close()
    path = place.root / writer.letters
    assert path.read_bytes() == content
    path.write_bytes(b"")
    few_at_once(monkeypatch)
    LiveLog(place.outbox, place.root).close()
    assert path.read_bytes() == content


def full() -> int:
    raise OSError(28, os.strerror(28))


def test_nothing_to_publish(place: Place) -> None:
    outbox = place.open()
    assert outbox.publish("q-1", 0, [])
    assert place.records() == []


def test_two_files_of_one_port_and_partition_keep_their_names_apart(place: Place) -> None:
    outbox = place.open()
    outbox.publish("q-1", 0, [*place.stage(0, 0, 7), *place.stage(0, 0, 7)])
    assert place.names() == ["q-1-0-0-7-1.frames", "q-1-0-0-7.frames"]


def test_the_log_is_cut_as_far_as_everything_is_delivered(place: Place) -> None:
    outbox = place.open(compact_bytes=500)
    follower = LogReader(place.outbox)
    seen: list[int] = []
    longest = 0
    for batch in range(100):
        outbox.publish("q-1", batch, place.stage(batch, 0, 7, 8))
        longest = max(longest, (place.outbox / "log").stat().st_size)
        if batch % 3 == 0:
            seen += [record.number for record in follower.records()]
        for port in (7, 8):
            write_position(place.outbox, port, SinkPosition(record=max(0, batch - 2)), durable=False)
    seen += [record.number for record in follower.records()]
    assert seen == list(range(100))
    follower.close()
    assert longest < 3000
    assert place.records()[-1].number == 99
    reopened = place.open(compact_bytes=500)
    assert (reopened.last().query, reopened.last().batch) == ("q-1", 99)
    assert reopened.messages() == {7: 100, 8: 100}
    assert not reopened.publish("q-1", 5, place.stage(5, 0, 7))
    late = LogReader(place.outbox, number=99)
    assert [record.number for record in late.records()] == [99]
    late.close()


def test_what_is_kept_for_a_sink_that_is_gone_is_removed(place: Place) -> None:
    outbox = place.open(compact_bytes=500)
    for batch in range(50):
        outbox.publish("q-1", batch, place.stage(batch, 0, 7, 8))
        write_position(place.outbox, 7, SinkPosition(record=batch + 1), durable=False)
    write_position(place.outbox, 8, SinkPosition(record=1), durable=False)
    assert len(place.records()) == 50, "port 8 needs them"
    changed = Outbox(place.outbox, place.root / "dead-letters", place.staging, ports={7, 9}, compact_bytes=500)
    assert place.names() == sorted(f"q-1-{batch}-0-7.frames" for batch in range(50))
    assert other_positions(place.outbox, [7, 9]) == [SinkPosition(record=1)], "totals need it"
    for batch in range(50, 150):
        changed.publish("q-1", batch, place.stage(batch, 0, 7, 9))
        for port in (7, 9):
            write_position(place.outbox, port, SinkPosition(record=batch + 1), durable=False)
    assert changed.size() == 0
    assert place.records()[0].number > 50
    assert changed.messages() == {7: 150, 8: 50, 9: 100}


COUNTS = st.tuples(st.integers(0, 3), st.integers(0, 3))


@settings(max_examples=20)
@given(st.lists(st.dictionaries(st.integers(0, 3), COUNTS, min_size=1), max_size=4))
def test_totals_keep_the_counts_of_sinks_that_are_gone(runs: list[dict[int, tuple[int, int]]]) -> None:
    """Each run has sinks of a changed program, which take some messages and refuse others."""
    ports, number, taken, refused = dict[int, int](), 0, 0, 0
    with TemporaryDirectory() as folder:
        place = Place(Path(folder))
        for batch, sinks in enumerate(runs):
            number += len(sinks)
            ports = {sink: ports.get(sink, number - index) for index, sink in enumerate(sinks)}
            outbox = Outbox(place.outbox, place.root / "dead-letters", place.staging, ports=ports.values())
            config = [pb.Sink(port=port, host="h", tcp_port=1) for port in ports.values()]
            sender, peers = Sender(place.root, pb.AttachOutboxRequest(sinks=config)), Mock()
            peers.egress.status.return_value = json.loads(sender.status.text)
            assert (Peers._of_sinks(peers, "messages"), Peers._of_sinks(peers, "refused")) == (taken, refused)
            outbox.publish("q", batch, place.stage(batch, 0, *ports.values(), query="q"))
            for sink, counts in sinks.items():
                before = read_position(place.outbox, ports[sink])
                sums = {"messages": before.messages + sum(counts), "refused": before.refused + counts[1]}
                write_position(place.outbox, ports[sink], SinkPosition(**sums), durable=False)
                taken, refused = taken + counts[0], refused + counts[1]


def test_the_log_is_not_cut_while_a_sink_is_away(place: Place) -> None:
    outbox = place.open(compact_bytes=500)
    for batch in range(50):
        outbox.publish("q-1", batch, place.stage(batch, 0, 7, 8))
        write_position(place.outbox, 7, SinkPosition(record=batch + 1), durable=False)
    assert [record.number for record in place.records()] == list(range(50))
