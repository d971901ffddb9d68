"""How a gateway ends and what senders see: the end of the stream only where all their messages are in the journal."""

import contextlib
import errno
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.part import journal_request
from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.experimental import protocol
from wallaroo.message.frame import read_frame, split_frames
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.config import Limits
from wallaroo_runtime.gateway.framing import fixed_cutter
from wallaroo_runtime.gateway.gateway import Gateway
from wallaroo_runtime.gateway.source_progress import SourceProgress
from wallaroo_runtime.gateway.visit import VisitIntake
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.storage.journal import writer
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter

DEADLINE_S = 90.0
LARGE = 300_000  # bytes of a half message that waits for room
ENDS = ("order", "full disk", "read-only disk", "disk error", "sync error", "other error", "defect")
STATES = (
    *("idle", "half message", "half-closed", "half-closed in a message"),
    *("unread", "unread end", "end unread", "blocked"),
)
KINDS = ("u32be", "newline", "connector")
Sender = tuple[str, str, int]  # kind of source, state, number of whole messages
SENDERS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(STATES), st.integers(0, 3)), min_size=1, max_size=6
)
COOKIE = "c"


def test_a_gateway_that_cannot_begin_lets_its_journal_go(tmp_path: Path) -> None:
    """A service tries again in the same process, when the disk has room again."""
    config = journal_request(kafka=[{"port": 3, "name": "in", "topic": "t", "brokers": ["h:1"]}])
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(SourceProgress, "save", side_effect=full), pytest.raises(OSError, match="space"):
        Gateway(tmp_path, config, mock.Mock(), mock.Mock())
    JournalWriter(tmp_path / "journal").close()


class Disk:
    """What the journal is written to; `errors` come instead of frames."""

    def __init__(self) -> None:
        self.error = 0
        self._write, self._sync = writer.write_all, JournalWriter.sync
        self.sync_error = 0

    def write(self, descriptor: int, data: bytes, at: int) -> None:
        if self.error and at:  # the head is written at 0
            raise OSError(self.error, os.strerror(self.error))
        self._write(descriptor, data, at)

    def sync(self, journal: JournalWriter) -> None:
        if self.sync_error:
            raise OSError(self.sync_error, os.strerror(self.sync_error))
        self._sync(journal)


class Running:
    """A gateway in a thread, on a disk that fails on demand."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.disk, self.directory, self.failure = Disk(), directory, [RunError([])]
        stack.enter_context(mock.patch.object(writer, "write_all", self.disk.write))
        stack.enter_context(mock.patch.object(JournalWriter, "sync", lambda journal: self.disk.sync(journal)))
        sources: list[dict[str, Any]] = [
            {
                "port": port,
                "path": kind,
                "name": kind,
                "host": "127.0.0.1",
                "framing": kind,
                "max_message_bytes": 1 << 20,
            }
            for port, kind in enumerate(KINDS)
        ]
        sources[-1]["connector"] = {"cookie": COOKIE, "max_credits": 100, "refill_credits": 10}
        request, limits = journal_request(sources=sources, fsync="batch"), Limits(look_s=0.05, buffer_bytes=LARGE)
        self.gateway = Gateway(directory, request, mock.Mock(), mock.Mock(), limits=limits)
        self.is_paused, self.is_defect = threading.Event(), False
        self.may_read = threading.Event()
        self.may_read.set()
        self._serve = self.gateway._serve
        self.gateway._serve = self._hold  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _hold(self, timeout: float) -> None:
        """Read nothing while the test says so, as a gateway does whose backlog is full."""
        if self.may_read.is_set():
            self._serve(timeout)
        else:
            self.is_paused.set()
            time.sleep(0.001)

    def pause(self) -> None:
        """Let it read nothing from now on."""
        self.is_paused.clear()
        self.may_read.clear()
        self.gateway.wake()
        self.wait(self.is_paused.is_set)

    def _run(self) -> None:
        try:
            self.gateway.run()
        except RunError as error:
            self.failure = [error]
        except LookupError:
            self.failure = []
            assert self.is_defect
        else:
            self.failure = []

    def end(self, how: str) -> RunError | None:
        self.is_defect = how == "defect"
        if how in ("other error", "defect"):
            refused = RunError.of("R606", source="s", reason="1", place="p", limit=0)
            error = LookupError("a defect") if self.is_defect else refused
            with mock.patch.object(VisitIntake, "turn", side_effect=[error, None]):
                self.gateway.wake()
                self._thread.join(DEADLINE_S)
        self.gateway.stop()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        return self.failure[0] if self.failure else None

    def wait(self, holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds() and self._thread.is_alive():
            assert time.monotonic() < deadline, self.gateway.status.text
            time.sleep(0.001)

    def journal(self) -> set[bytes]:
        """Return the bytes of each message of senders that readers see."""
        reader = JournalReader(self.directory / "journal")
        found: set[bytes] = set()
        for piece in reader.read(0, reader.end().offset):
            for header, at, _ in split_frames(piece):
                if header.port < len(KINDS) - 1 and header.count:
                    found |= set(cut(KINDS[header.port], read_frame(piece, at).data))
        return found


def cut(kind: str, data: bytes) -> Iterator[bytes]:
    cutter, at = fixed_cutter(kind, 1 << 20), 0
    while at < len(data):
        size = data.index(b"\n", at) + 1 - at if kind == "newline" else 4 + int.from_bytes(data[at : at + 4], "big")
        yield data[at : at + size]
        at += size
    assert cutter(data, len(data)).end == len(data)


def framed(kind: str, payload: bytes) -> bytes:
    return payload + b"\n" if kind == "newline" else struct.pack(">I", len(payload)) + payload


class Peer:
    """One sender in a state."""

    def __init__(self, running: Running, number: int, sender: Sender, stack: ExitStack) -> None:
        self.kind, self.state, count = sender
        self.is_reset = False
        address = running.gateway.addresses()[KINDS.index(self.kind)]
        self.socket = stack.enter_context(socket.create_connection(address, DEADLINE_S))
        self.messages = [framed(self.kind, b"%d-%d" % (number, each)) for each in range(count)]
        self.is_open = "half-closed" not in self.state and "end" not in self.state
        self.half = b"half of %d" % number
        self.hello = protocol.hello(protocol.PROTOCOL_VERSION, COOKIE, "p", str(number))

    @property
    def is_late(self) -> bool:
        return self.state.startswith("unread") and self.kind != "connector"

    def send(self) -> None:
        try:
            self.socket.sendall(self.hello) if self.kind == "connector" else self._send()
        except OSError:  # the gateway has ended; who reads now gets no error again
            self.is_reset = True

    def _send(self) -> None:
        part = b""
        if self.state == "blocked":
            part = bytes(LARGE) if self.kind == "newline" else struct.pack(">I", 2 * LARGE) + bytes(LARGE)
        elif "message" in self.state:
            part = self.half if self.kind == "newline" else struct.pack(">I", 99) + self.half
            if self.kind == "newline" and not self.is_open:
                self.messages.append(self.half + b"\n")  # the end of the connection is the end of the line
        sent = self.messages[:-1] if part == self.half and not self.is_open else self.messages
        self.socket.sendall(b"".join(sent) + part)
        if not self.is_open and self.state != "end unread":
            self.socket.shutdown(socket.SHUT_WR)

    def send_late(self) -> None:
        """Send what nobody will read."""
        if self.is_late:
            self.send()
        elif self.state == "end unread":
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)

    def check(self, safe: set[bytes], *, is_answered: bool) -> None:
        """The end of the stream comes only to who has ended, and only if all is safe."""
        said = self.said()
        if self.kind == "connector":
            return
        assert said is not None or not is_answered, "all is safe, and it asked"
        if said is not None:
            assert [each for each in self.messages if each not in safe] == [], self.state
            assert not self.is_open, "a peer that may still send must not take EOF for an answer"

    def said(self) -> bytes | None:
        """Return what the gateway has sent; None: a reset came."""
        received = b""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            while not self.is_reset and (data := self.socket.recv(65536)):
                received += data
            return None if self.is_reset else received
        return None


@settings(max_examples=40)
@given(SENDERS, st.sampled_from(ENDS), st.booleans(), st.booleans())
@example([("u32be", "half-closed", 2), ("u32be", "unread end", 0)], "full disk", True, False)
@example([("u32be", "end unread", 2)], "full disk", True, True)
@example([("newline", "half-closed in a message", 1)], "order", True, False)
@example([("u32be", "idle", 1), ("newline", "half-closed", 1)], "read-only disk", False, True)
@example([("u32be", "idle", 1), ("connector", "idle", 0)], "order", True, True)
@example([("u32be", "half-closed", 2)], "defect", True, False)
def test_the_end_of_the_stream_means_safe_however_the_gateway_ends(
    senders: Sequence[Sender], end: str, waits: bool, fails_before: bool
) -> None:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        running = Running(Path(folder), stack)
        peers = [Peer(running, number, sender, stack) for number, sender in enumerate(senders)]
        running.wait(lambda: len(running.gateway._connections) == len(peers))
        if fails_before:
            fail(running.disk, end)
        for peer in peers:
            peer.send() if not peer.is_late else None
        if waits:
            running.wait(lambda: has_read(running, peers, is_stalled=fails_before and end == "full disk"))
        running.pause()
        for peer in peers:
            peer.send_late()
        fail(running.disk, end)
        failure = running.end(end)
        safe = running.journal()
        for peer in peers:
            peer.check(safe, is_answered=waits and end == "order" and peer.state == "half-closed")
        check_said(failure, end, running.gateway._intake.messages - len(safe))


def has_read(running: Running, peers: Sequence[Peer], *, is_stalled: bool) -> bool:
    intake = running.gateway._intake
    expected = sum(len(peer.messages) for peer in peers if peer.kind != "connector" and not peer.is_late)
    return intake.messages >= expected or (is_stalled and intake.disk_is_full)


def check_said(failure: RunError | None, end: str, lost: int) -> None:
    """The count of messages that were read and not written is reported, and the process fails."""
    codes = [finding.code for finding in failure.diagnostics] if failure else []
    if end == "full disk":
        assert codes == (["R800"] if lost else []), codes
        assert failure is None or f"and {lost} messages that it had read could not be written" in str(failure)
    elif end in ("order", "defect"):
        assert not codes
        assert not lost
    elif end == "other error":
        assert codes == ["R606"]
        assert not lost
    else:
        why = "R626" if end == "read-only disk" else "R698"
        assert codes in ([], [why], [why, "R800"])
        assert codes or not lost


def fail(disk: Disk, end: str) -> None:
    if end == "full disk":
        disk.error = errno.ENOSPC
    elif end in ("read-only disk", "disk error"):
        disk.error = errno.EIO if end == "disk error" else errno.EROFS
    elif end == "sync error":
        disk.sync_error = errno.EIO


def test_connectors_are_asked_to_connect_again_and_read_that(tmp_path: Path) -> None:
    with ExitStack() as stack:
        running = Running(tmp_path, stack)
        peer = Peer(running, 0, ("connector", "idle", 0), stack)
        peer.send()
        received = bytearray(peer.socket.recv(1024))
        assert [frame.tag for frame in protocol.cut(received)] == [protocol.OK]
        assert running.end("order") is None
        received = bytearray(peer.said() or b"")
        assert [frame.tag for frame in protocol.cut(received)] == [protocol.RESTART]


def test_a_run_says_what_its_gateways_lost_and_fails() -> None:
    lost = Diagnostic.of("R800", path="journal", count="3")
    peers, warned = object.__new__(Peers), list[Diagnostic]()
    peers.gateways = [mock.Mock(status=dict), mock.Mock(status=lambda: {"diagnostics": [lost.to_json()]})]
    with (
        pytest.raises(RunError, match="R800 the gateway has ended, and 3 messages"),
        peers.telling_refused(warned.append),
    ):
        pass
    assert not warned
    with pytest.raises(RunError, match="R626"), peers.telling_refused(warned.append):
        raise RunError.of("R626", what="outbox", reason="full", fix="free some space")
    assert [finding.code for finding in warned] == ["R800"]
    with pytest.raises(RunError), peers.telling_refused(warned.append):
        raise RunError([lost])
    assert len(warned) == 1
