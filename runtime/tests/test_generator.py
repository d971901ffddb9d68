"""Generator sources in the gateway: exactly once in the journal, only a little ahead, and what happens at the end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.part import PART, configured
from wallaroo.message.frame import read_frame, split_frames
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.generator import AHEAD_BYTES, REPLY_BYTES
from wallaroo_runtime.gateway.source_progress import NAME, Last, SourceProgress, point_headers
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter

PORT = 3
ENCODING = 17  # of number_maker.py


class Gateway:
    """A gateway whose only source is a generator."""

    def __init__(self, directory: Path, target: str) -> None:
        self.directory, self.target = directory, target
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; it may be started again after `kill`."""
        generator = {"port": PORT, "path": "0/sources/0", "name": "numbers", "target": self.target}
        request = {"generators": [generator], "segment_bytes": 200_000, "fsync_interval_ms": 5}
        path = configured(self.directory, request, "number_maker:NumberMaker")
        places = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": places}
        with (self.directory / "log").open("ab") as log:
            self.child = subprocess.Popen([sys.executable, PART, "gateway", path], stderr=log, env=environment)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the process and wait for its end."""
        if self.child is not None:
            self.child.send_signal(number)
            self.child.wait(15)
            self.child = None

    def end(self) -> Any:
        """Return how far the journal may be read; None when there is none."""
        try:
            return JournalReader(self.directory / "journal").end()
        except RunError:
            return None

    def offset(self) -> int:
        """Return the end of what may be read; 0 when there is nothing."""
        end = self.end()
        return end.offset if end is not None else 0

    def status(self) -> dict[str, Any]:
        """Return what the process says; empty before it says anything."""
        try:
            value: dict[str, Any] = json.loads((self.directory / "gateway.json").read_bytes())
        except FileNotFoundError:
            return {}
        return value

    def has_ended(self) -> bool:
        """Say whether the source has come to its end, and everything is safe."""
        status = self.status()
        generators = status.get("generators") or [{"ended": False}]
        return bool(generators[0]["ended"]) and status["end"] == status["safe"]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Callable[[str], Gateway]]:
    """Give a function that starts a gateway with a target; it is killed afterwards."""
    started: list[Gateway] = []

    def start(target: str) -> Gateway:
        started.append(Gateway(tmp_path, target))
        started[0].start()
        return started[0]

    yield start
    for each in started:
        each.kill()


def numbers(directory: Path, begin: int, end: int) -> list[int]:
    """Return the messages of a part of the journal."""
    found: list[int] = []
    for data in JournalReader(directory / "journal").read(begin, end):
        for header, at, _ in split_frames(data):
            assert (header.port, header.encoding) == (PORT, ENCODING)
            found += map(int, read_frame(data, at).values())
    return found


@pytest.mark.slow
def test_each_message_is_made_once_over_kills_and_removed_segments(
    gateway: Callable[[str], Gateway], wait_until: Callable[..., None], tmp_path: Path
) -> None:
    last = 100_000
    running = gateway(str(last))
    taken: list[int] = []
    offset = 0
    for turn in range(8):
        wait_until(lambda before=offset: running.offset() > before, "new messages")
        if turn % 2:
            running.kill()
        end = running.end().offset
        taken += numbers(tmp_path, offset, end)
        JournalReader(tmp_path / "journal").commit(end)
        offset = end
        if turn % 2:
            running.start()
    deadline = time.monotonic() + 60
    while len(taken) < last:
        assert time.monotonic() < deadline, f"{len(taken)} messages; {running.status()}"
        end = running.end().offset
        taken += numbers(tmp_path, offset, end)
        JournalReader(tmp_path / "journal").commit(end)
        offset = end
    assert taken == list(range(1, last + 1))
    wait_until(running.has_ended, "the end")
    assert (tmp_path / "journal" / NAME).exists(), "no segment was removed"
    running.kill(signal.SIGTERM)
    running.start()
    wait_until(running.has_ended, "the end once more")
    assert running.end().messages == last


@pytest.mark.slow
def test_only_a_little_is_made_ahead(
    gateway: Callable[[str], Gateway], wait_until: Callable[..., None], tmp_path: Path
) -> None:
    running = gateway("10000000")
    wait_until(lambda: bool(running.status().get("waits")), "the generator to wait")
    assert AHEAD_BYTES <= running.status()["end"] <= AHEAD_BYTES + 2 * REPLY_BYTES
    before = running.status()["end"]
    JournalReader(tmp_path / "journal").commit(before)
    wait_until(lambda: running.status()["end"] >= before + AHEAD_BYTES, "more messages")
    assert running.status()["end"] <= before + AHEAD_BYTES + 2 * REPLY_BYTES


@pytest.mark.slow
def test_a_generator_that_fails_says_so_and_keeps_what_it_made(
    gateway: Callable[[str], Gateway], wait_until: Callable[..., None], tmp_path: Path
) -> None:
    running = gateway("100,42")
    wait_until(running.has_ended, "the failure")
    assert numbers(tmp_path, 0, running.end().offset) == list(range(1, 42))
    running.kill(signal.SIGTERM)
    (finding,) = running.status()["diagnostics"]
    assert (finding["code"], finding["message"], finding["fix"]) == (
        "R670",
        'source "numbers" makes no more messages; C501 numbers: no more',
        "correct the user code and run again; it continues after its last message",
    )
    running.target = "100"
    running.start()
    wait_until(lambda: not running.status().get("diagnostics") and running.has_ended(), "the end")
    assert numbers(tmp_path, 0, running.end().offset) == list(range(1, 101))


def test_the_past_is_what_the_frames_say(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    past = SourceProgress(tmp_path, [1], [2])
    for number in range(3):
        writer.append(1, 1, [b"\x01\x02", b"v%d" % number], 0, 0, ENCODING)
    headers = point_headers(3, [(8, (0, 5)), (7, (2, 41))])
    lengths = bytes((1, *map(len, headers)))
    writer.append(2, 3, [lengths, *headers, b"\x01\x01\x01\x01", b"abc"], 0, 8, 0)
    writer.sync()
    past.advance(writer.safe.offset)
    past.save()
    assert (past.values, past.points) == ({1: Last(b"v2", ENCODING)}, {2: {8: 5, 7: 41}})
    again = SourceProgress(tmp_path, [1], [2, 4])
    assert (again.values, again.points) == ({1: Last(b"v2", ENCODING)}, {2: {8: 5, 7: 41}, 4: {}})
    assert SourceProgress(tmp_path, [], []).values == {}
    writer.close()


def test_a_damaged_file_about_the_past_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("{}")
    with pytest.raises(RunError, match="R698 .*past is damaged; it does not fit its checksum"):
        SourceProgress(tmp_path, [1], [])


def test_a_file_about_the_past_that_is_gone_is_missed_when_segments_were_removed(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path, segment_bytes=100)
    past = SourceProgress(tmp_path, [], [])
    for number in range(10):
        writer.append(1, 1, [b"%d" % number + b"." * 80], timestamp_ms=0)
    writer.sync()
    JournalReader(tmp_path).commit(writer.safe.offset)

    def remember(offset: int) -> None:
        past.move(offset)
        past.save()

    writer.remove_committed(remember)
    writer.close()
    assert SourceProgress(tmp_path, [], []).values == SourceProgress(tmp_path, [1], []).values == {}, (
        "a source that is new knows nothing"
    )
    (tmp_path / NAME).unlink()
    SourceProgress(tmp_path, [], [])
    with pytest.raises(RunError, match="R698 journal .*past at offset 0 is damaged; past ends at 0; the first segment"):
        SourceProgress(tmp_path, [1], [])
