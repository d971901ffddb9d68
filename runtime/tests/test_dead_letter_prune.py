"""`wallaroo dead-letters prune`: which letters are left, under which ids, whatever it was interrupted at."""

import json
import os
import tempfile
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.delivery import frame_of
from support.manifest import put_manifest
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.dead_letter import StoredLetter, read_letters
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.egress.delivery import Deliveries
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.maintenance.prune_dead_letters import prune
from wallaroo_runtime.service._proto import service_pb2 as pb2
from wallaroo_runtime.service.attachment import PROTOCOL_VERSION, AttachmentStore
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.live_state import AttemptWriter
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.system.lock import TRY, take_lock

QUERY = "0b9a1f60-1111-2222-3333-444455556666"
# Micro-batches of files: the partition, and how many letters each of its frames has.
BATCHES = st.lists(
    st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(1, 3), min_size=1, max_size=3)), max_size=4), max_size=3
)


class Killed(Exception):  # noqa: N818
    """Ends a prune, as a kill between two letters does."""


def letter(number: int, step: str = "count") -> pb.DeadLetter:
    # The time is that of old data, which says nothing of when the letter was written.
    return pb.DeadLetter(code="C501", step=step, path="0/steps/1", sequence=number, timestamp_ms=1_000_000)


def stage(folder: Path, name: str, partition: int, frames: list[list[pb.DeadLetter]]) -> StagedFile:
    folder.mkdir(parents=True, exist_ok=True)
    port = DEAD_LETTER_PORT
    data = b"".join(encode_frame([each.SerializeToString() for each in frame], port=port) for frame in frames)
    (folder / f"{name}.frames").write_bytes(data)
    count = sum(map(len, frames))
    return StagedFile(port, str(folder / f"{name}.frames"), len(data), zlib.crc32(data), count, partition)


def publish(checkpoint: Path, batches: list[list[tuple[int, list[list[pb.DeadLetter]]]]]) -> Outbox:
    for name in ("outbox", "dead-letters", "staging"):
        (checkpoint / name).mkdir(parents=True, exist_ok=True)
    outbox = Outbox(checkpoint / "outbox", checkpoint / "dead-letters")
    for batch, files in enumerate(batches):
        staged = [stage(checkpoint / "s", f"{batch}-{at}", *each) for at, each in enumerate(files)]
        outbox.publish(QUERY, batch, staged, offsets=str(batch))
    return outbox


def is_in(wanted: set[int]) -> Callable[[StoredLetter, bool], bool]:
    return lambda each, _: each.record.sequence in wanted


def content(checkpoint: Path) -> dict[str, int]:
    return {each.id: each.record.sequence for each in read_letters(checkpoint)}


@settings(max_examples=40, deadline=None)
@given(BATCHES, st.lists(st.tuples(st.sets(st.integers(0, 40)), st.none() | st.integers(0, 40)), max_size=4))
def test_the_others_keep_their_ids(
    drawn: list[list[tuple[int, list[int]]]], prunes: list[tuple[set[int], int | None]]
) -> None:
    number = iter(range(10_000))
    batches = [[(part, [[letter(next(number)) for _ in range(n)] for n in ns]) for part, ns in b] for b in drawn]
    with tempfile.TemporaryDirectory() as name:
        checkpoint = Path(name)
        outbox = publish(checkpoint, batches)
        count, expected = outbox.letters(), content(checkpoint)
        assert len(expected) == count == next(number)
        for wanted, kill_at in prunes:
            before, looked = dict(expected), 0

            def choose(each: StoredLetter, _: bool, wanted: set[int] = wanted, kill_at: int | None = kill_at) -> bool:
                nonlocal looked
                looked += 1
                if looked - 1 == kill_at:
                    raise Killed
                return each.record.sequence in wanted

            expected = {key: value for key, value in before.items() if value not in wanted}
            dry = prune(checkpoint, is_in(wanted), dry_run=True)
            assert (dry.removed, dry.kept, content(checkpoint)) == (len(before) - len(expected), len(expected), before)
            try:
                prune(checkpoint, choose)
            except Killed:
                left = content(checkpoint)
                assert expected.items() <= left.items() <= before.items()
                prune(checkpoint, is_in(wanted))
            assert content(checkpoint) == expected
        if not expected:
            assert not list((checkpoint / "dead-letters").glob("*.frames"))
        assert Outbox(checkpoint / "outbox", checkpoint / "dead-letters").letters() == count


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["dead-letters", "prune", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint"
    publish(path, [[(0, [[letter(1, "split"), letter(2)], [letter(3, "split")]]), (1, [[letter(4)]])]])
    for partition, age_s in enumerate((100, 9000)):
        at = time.time() - age_s
        os.utime(path / "dead-letters" / f"{QUERY}-0-{partition}.frames", (at, at))
    (path / "dead-letters" / "replayed").write_text("0-0-1\n0-1-0\n")
    put_manifest(path)
    return path


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        (["--all"], []),
        (["--step", "split"], [2, 4]),
        (["--step", "split", "--older-than", "90s"], [2, 4]),
        (["--step", "split", "--older-than", "3m"], [1, 2, 3, 4]),
        (["--older-than", "2h"], [1, 2, 3]),
        (["--older-than", "0s", "--code", "C505"], [1, 2, 3, 4]),
        (["--replayed"], [1, 3]),
    ],
)
def test_options_choose(
    checkpoint: Path, capsys: pytest.CaptureFixture[str], choice: list[str], left: list[int]
) -> None:
    code, out, err = run(capsys, checkpoint, *choice, "--dry-run", "--json")
    assert (code, err, list(content(checkpoint).values())) == (0, "", [1, 2, 3, 4])
    said = json.loads(out)
    assert (said["removed"], said["kept"], said["bytes"], said["dry_run"]) == (4 - len(left), len(left), 0, True)
    assert run(capsys, checkpoint, *choice)[0] == 0
    assert list(content(checkpoint).values()) == left
    if "--replayed" in choice:
        assert (checkpoint / "dead-letters" / "replayed").read_text() == ""


def test_letters_that_are_left_keep_their_age(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, checkpoint, "--step", "split")[0] == 0
    assert run(capsys, checkpoint, "--older-than", "90s")[1].startswith("2 removed")


def test_a_choice_is_needed(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, checkpoint)
    assert code == 2
    assert "R608 prune needs a choice, or --all" in err
    assert "R608 --all leaves no use for a choice" in run(capsys, checkpoint, "--all", "--replayed")[2]
    assert "'7y' is no age; write e.g. 90s, 30m, 12h or 7d" in run(capsys, checkpoint, "--older-than", "7y")[2]


def test_letters_of_a_batch_that_is_being_published_are_kept(checkpoint: Path) -> None:
    first = next((checkpoint / "dead-letters").glob("*-0-0.frames"))
    first.with_name(f"{QUERY}-1-0.frames").write_bytes(first.read_bytes())
    assert prune(checkpoint, lambda *_: True).kept == 3
    assert list(content(checkpoint)) == ["1-0-0", "1-0-1", "1-0-2"]


def test_another_prune_or_a_run_refuses_it(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = take_lock(checkpoint / "dead-letters", TRY)
    code, _, err = run(capsys, checkpoint, "--all")
    assert (code, "is in use by another replay or prune" in err) == (1, True)
    os.close(held)
    LiveLog(checkpoint / "outbox", checkpoint / "dead-letters").close()
    place = HeldDirectory.take(checkpoint)
    code, _, err = run(capsys, checkpoint, "--all")
    assert (code, "is in use by another run (process" in err) == (1, True), err
    assert run(capsys, checkpoint, "--all", "--dry-run")[0] == 0
    place.release()
    (checkpoint / "application.json").unlink()
    with pytest.raises(RunError, match=f"R608 the dead letters of {checkpoint} cannot be pruned"):
        prune(checkpoint, lambda *_: True)
    assert len(content(checkpoint)) == 4


class Engines:
    """The dead letters that engines of real-time mode deliver, one after the other, on one checkpoint.

    Attributes:
        place: Where the one that runs has begun; in the names of files and letters.
        expected: Ids and sequences of all letters.
    """

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint, self.place, self.expected = checkpoint, 0, dict[str, int]()
        self._sequence = self._attempt = 0
        self._frames: list[bytes] = []
        publish(checkpoint, [])
        self.mode(mode="realtime")
        self._store = AttachmentStore(checkpoint, "egress", "here")
        driver = pb2.Driver(protocol_version=PROTOCOL_VERSION, id="d", application="a", checkpoint="c")
        self._store.save(self._store.admit(driver, "", {})[0])

    def mode(self, **fields: str) -> None:
        put_manifest(self.checkpoint, **fields)

    def run(self, counts: list[int], *, is_repeated: bool) -> None:
        """Deliver frames of letters; a repeated engine begins where the last one has, with all that came since."""
        self._attempt += 1
        if not is_repeated:
            self.place, self._frames = self.place + 1 + len(self._frames), []
        live = LiveLog(self.checkpoint / "outbox", self.checkpoint / "dead-letters", segment_bytes=1500)
        deliveries = Deliveries(live, self._store, set, lambda port: None)
        stream = deliveries.open(AttemptWriter(1, QUERY, self.place, 0, self._attempt))
        number = sum(id_.startswith(f"{self.place}-0-") for id_ in self.expected)
        for count in counts:
            letters = [letter(self._sequence + at) for at in range(count)]
            results = [(each.sequence, each.SerializeToString()) for each in letters]
            self.expected |= {f"{self.place}-0-{number + at}": each.sequence for at, each in enumerate(letters)}
            self._sequence, number = self._sequence + count, number + count
            self._frames.append(frame_of(results, DEAD_LETTER_PORT))
        for at, frame in enumerate(self._frames, 1):
            stream.take(pb2.Delivery(number=at, port=DEAD_LETTER_PORT, bucket=0, chunk=pb2.Chunk(data=frame)))
        deliveries.close()

    def prune(self, wanted: set[int], kill_at: int | None, *, keeps_last: bool) -> None:
        before, looked = content(self.checkpoint), 0

        def choose(each: StoredLetter, _: bool) -> bool:
            nonlocal looked
            looked += 1
            if looked - 1 == kill_at:
                raise Killed
            return each.record.sequence in wanted

        last = f"{self.place}-0-"
        gone = {id_ for id_, number in before.items() if number in wanted and not (keeps_last and id_.startswith(last))}
        assert prune(self.checkpoint, is_in(wanted), dry_run=True).removed == len(gone)
        assert content(self.checkpoint) == before
        with suppress(Killed):
            prune(self.checkpoint, choose)
        prune(self.checkpoint, is_in(wanted))
        self.expected = {id_: number for id_, number in self.expected.items() if id_ not in gone}

    def check(self) -> None:
        """Compare the letters with what was delivered and not removed, also after the log is recovered."""
        for _ in range(2):
            assert content(self.checkpoint) == self.expected
            live = LiveLog(self.checkpoint / "outbox", self.checkpoint / "dead-letters")
            live.close()
            assert live.state.messages[DEAD_LETTER_PORT] == self._sequence


def test_letters_of_the_last_run_are_counted_with_what_releases_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engines = Engines(tmp_path)
    engines.run([2, 1], is_repeated=False)
    held = "of them are of the last run in real-time mode, which may write them again; "
    held += "prune again once another run has begun"
    for options in (["--dry-run"], []):
        code, _, err = run(capsys, tmp_path, "--all", *options)
        assert (code, err) == (0, f"3 {held}\n")
    assert json.loads(run(capsys, tmp_path, "--all", "--json")[1])["kept_of_last_run"] == 3
    assert run(capsys, tmp_path, "--code", "C505")[2] == "", "none of them was chosen"
    engines.run([1], is_repeated=False)
    _, counts, line = run(capsys, tmp_path, "--all")
    assert (counts.split()[:2], line) == (["3", "removed,"], f"1 {held}\n")
    engines.mode()
    outbox = Outbox(tmp_path / "outbox", tmp_path / "dead-letters")
    outbox.publish(QUERY, engines.place + 1, (), offsets="plan")
    assert run(capsys, tmp_path, "--all")[2] == ""


RUNS = st.lists(
    st.tuples(
        st.lists(st.integers(1, 4), max_size=5),
        st.booleans(),
        st.sets(st.integers(0, 60)),
        st.none() | st.integers(0, 20),
    ),
    max_size=6,
)


@given(RUNS)
@example([([4], False, {0}, None), ([2], True, {1, 4}, None), ([1], False, set(range(9)), 2)])
def test_letters_of_real_time_mode_but_those_of_the_last_run(
    runs: list[tuple[list[int], bool, set[int], int | None]],
) -> None:
    """Until it is in micro-batches again: then all that a record covers, and real-time mode goes on after that."""
    with tempfile.TemporaryDirectory() as name:
        engines = Engines(Path(name))
        for counts, is_repeated, wanted, kill_at in runs:
            engines.run(counts, is_repeated=is_repeated)
            engines.prune(wanted, kill_at, keeps_last=True)
            engines.check()
        engines.mode()
        outbox = Outbox(engines.checkpoint / "outbox", engines.checkpoint / "dead-letters")
        outbox.publish(QUERY, engines.place + 1, (), offsets="plan")
        everything = set(range(10_000))
        engines.prune(everything, 3, keeps_last=False)
        engines.check()
        engines.mode(mode="realtime")
        engines.run([3, 1], is_repeated=False)
        engines.check()
