"""Windows over generated messages, against the plain reference, through deaths of workers and driver and a rescale.

`make windows` runs an application in Python and one in Go, over 1,000,000 messages for each of five kinds: windows of
9 s every 3 s by the time in the data and by that of arrival, windows of 5 s that wait for late messages, sessions, and
windows of 7 messages. The reference reads what the journal holds: messages, their times, and ticks.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from support.life import free_port
from support.run import MODES, TESTS, Receiver, Run, finish, framed, wait_until, wallaroo
from vector.make_window_cases import counts, ranges, sessions
from vector.make_windows import Reference
from wallaroo.message.frame import TICK_PORT, read_frame, split_frames
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.monitor.endpoint import status_of
from wallaroo_runtime.storage.journal.reader import JournalReader

APPS = {"python": TESTS / "recovery" / "window" / "app.py", "go": TESTS / "recovery" / "window"}
WINDOWS = {
    "event": ranges(9000, 3000, time="event"),
    "ingest": ranges(9000, 3000),
    "tumbling": ranges(5000, delay=1000, time="event"),
    "count": counts(7),
    "session": sessions(1000, delay=3000, time="event"),
}
KEYS = 400
PRIME, BASE = (1 << 61) - 1, 1_000_003
FAULTS = ("worker.after_compute:3", "worker.after_reply:6", "worker.before_compute:10", "driver.before_record:3")
START_MS, BLOCK = 1_700_000_000_000, 500
# An hour and a half of data for a million; now and then a key is silent for longer than windows wait.
STEP_MS = 5
# When no message came for 20 s (twice range and delay), a key has emitted everything; a tick may come 1 s later.
SILENCE_MS = 22_000
LOOK_S, DEATH_S = 0.5, 300.0


def texts(messages: int, seed: int) -> Iterator[bytes]:
    """Yield `TIME KEY VALUE`; times go forth, and back a little."""
    source = random.Random(seed)
    keys = [f"k{number}" for number in range(KEYS)]
    now = START_MS
    for number in range(messages):
        now += source.randrange(2 * STEP_MS)
        lively = keys[(number // 50_000) % 4 :: 4] if source.random() < 0.9 else keys
        late = source.choice((0, 0, 0, 0, 1500, 7000))
        yield f"{now - late} {source.choice(lively)} {number}".encode()


class Sender:
    """Sends the messages to every source within some seconds, in a thread, and waits until they are safe.

    Attributes:
        may_end: Set it to let the second half be sent.
    """

    def __init__(self, addresses: list[tuple[str, int]], messages: int, seconds: float, seed: int) -> None:
        self._addresses, self._messages, self._rate, self._seed = addresses, messages, messages / seconds, seed
        self.may_end = threading.Event()
        self.is_done = False
        self.fault: BaseException | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            with contextlib.ExitStack() as stack:
                connections = [
                    stack.enter_context(socket.create_connection(address, timeout=300)) for address in self._addresses
                ]
                self._send(connections)
                for connection in connections:
                    finish(connection)
        except BaseException as err:
            self.fault = err
        self.is_done = True

    def _send(self, connections: list[socket.socket]) -> None:
        began, sent = time.monotonic(), 0
        source = texts(self._messages, self._seed)
        while block := list(islice(source, BLOCK)):
            data = framed(block)
            for connection in connections:
                connection.sendall(data)
            sent += len(block)
            if sent - len(block) < self._messages // 2 <= sent:
                assert self.may_end.wait(DEATH_S), "nobody asked for the second half"
                began = time.monotonic() - sent / self._rate
            time.sleep(max(0.0, began + sent / self._rate - time.monotonic()))


class Kept:
    """Keeps a whole journal: links its segments, which are removed when they are processed.

    Args:
        journal: The journal of a run.
        folder: Where the links go.
    """

    def __init__(self, journal: Path, folder: Path) -> None:
        self._journal, self.folder = journal, folder
        self._last = {True: 0, False: 0}  # times of the last tick and message
        self._looked = 0
        folder.mkdir()

    def look(self) -> None:
        """Link new segments; a segment lives much longer than from one look to the next."""
        for segment in self._journal.glob("*.journal"):
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                os.link(segment, self.folder / segment.name)
        with contextlib.suppress(FileNotFoundError):
            head = (self._journal / "head").read_bytes()
            (self.folder / "head").write_bytes(head)

    def frames(self, begin: int, end: int) -> Iterator[tuple[Any, bytes, int]]:
        """Yield header of each frame, and where it is: bytes and position."""
        for piece in JournalReader(self.folder).read(begin, end):
            for header, at, _ in split_frames(piece):
                yield header, piece, at

    def silence(self) -> int:
        """Return how many milliseconds the last tick is later than the last message."""
        self.look()
        begin, self._looked = self._looked, JournalReader(self.folder).end().offset
        for header, _, _ in self.frames(begin, self._looked):
            self._last[header.port == TICK_PORT] = header.timestamp_ms
        return self._last[True] - self._last[False]


class Expected:
    """What the references give for all that a journal holds.

    Attributes:
        lines: For each kind and key, the lines in order.
        open: How many keys have open windows.
        ticks: How many ticks there were.
        dropped: How many messages came too late.
    """

    def __init__(self, kept: Kept, kinds: dict[int, str]) -> None:
        self._references = {port: Reference(WINDOWS[kind]) for port, kind in kinds.items()}
        self.ticks = 0
        for header, piece, at in kept.frames(0, JournalReader(kept.folder).end().offset):
            if header.port == TICK_PORT:
                self.ticks += 1
                for reference in self._references.values():
                    reference.tick(header.sequence, header.timestamp_ms)
            else:
                self._messages(header, read_frame(piece, at).data)
        self.lines: dict[tuple[str, str], list[str]] = {}
        for port, reference in self._references.items():
            for each in reference.given:
                text = f"{kinds[port]} {each.key} {digest(each.values)}"
                self.lines.setdefault((kinds[port], each.key), []).append(text)
        self.dropped = sum(reference.dropped for reference in self._references.values())
        self.open = sum(len(reference.keys) for reference in self._references.values())

    def _messages(self, header: Any, data: bytes) -> None:
        reference, place = self._references[header.port], 0
        for sequence in range(header.sequence, header.sequence + header.count):
            end = place + 4 + int.from_bytes(data[place : place + 4], "big")
            own, key, value = data[place + 4 : end].decode().split(" ")
            time_ms = int(own) if reference.is_event else header.timestamp_ms
            reference.message(sequence, key, time_ms, int(value))
            place = end


def digest(values: tuple[int, ...]) -> str:
    """Return what the application says of the values of a window."""
    found = 0
    for value in values:
        found = (found * BASE + value) % PRIME
    return f"{len(values)} {found}"


def by_key(lines: list[str]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for each in lines:
        kind, key, _ = each.split(" ", 2)
        found.setdefault((kind, key), []).append(each)
    return found


def ports(checkpoint: Path) -> dict[int, str]:
    """Return the kind of windows after each source, by the source's port."""
    document = json.loads((checkpoint / "application.json").read_text())
    sources = [source for pipeline in document["topology"]["pipelines"] for source in pipeline["sources"]]
    return {document["ports"]["parts"][source["path"]]: source["name"] for source in sources}


def check(language: str, messages: int, seconds: float, folder: Path, *options: object, seed: int = 7) -> str:
    """Run all kinds of windows through the deaths of `FAULTS`; return what was seen.

    Args:
        language: Of the application.
        messages: How many each kind gets.
        seconds: Within which they are sent.
        folder: Empty; the checkpoint goes there.
        options: Of `wallaroo run`.
        seed: Of the messages.

    Raises:
        AssertionError: The output differs from the reference's, or something did not die.
    """
    addresses = [("127.0.0.1", free_port(seed + number)) for number in range(len(WINDOWS))]
    source = ",".join(f"{host}:{port}" for host, port in addresses)
    checkpoint, fired = folder / "checkpoint", folder / "fired"
    fired.mkdir()
    faults = {"WALLAROO_FAULT": ",".join(FAULTS), "WALLAROO_FAULT_DIR": str(fired)}

    def start(*more: object) -> Run:
        return Run(APPS[language], receiver, checkpoint, *options, *more, source=source, **faults)

    began = time.monotonic()
    with Receiver() as receiver, contextlib.ExitStack() as stack:
        run = stack.enter_context(start()).ready()
        stack.callback(_end_left_behind, checkpoint)
        kept, sender = Kept(checkpoint / "journal", folder / "kept"), Sender(addresses, messages, seconds, seed)
        wait_until(lambda: run.process.poll() is not None, lambda: f"the death of the driver:\n{run.said()}", DEATH_S)
        assert run.process.returncode == -signal.SIGKILL, run.said()
        assert not sender.is_done, "the driver did not die in the middle"
        sender.may_end.set()
        run = stack.enter_context(start()).ready()
        _watch(run, kept, lambda: sender.is_done, f"{messages} messages to be sent", 1200)
        assert sender.fault is None, sender.fault
        sent = time.monotonic() - began
        _watch(run, kept, lambda: len(list(fired.iterdir())) == len(FAULTS), f"the deaths of {FAULTS}", DEATH_S)
        late = dropped(checkpoint)
        assert run.stop() == 0, run.said()
        rescale(checkpoint, seed, start)
        run = stack.enter_context(start()).ready()
        _watch(run, kept, lambda: kept.silence() >= SILENCE_MS, "ticks after the last message", 180)
        expected = Expected(kept, ports(checkpoint))
        size = sum(len(line) + 1 for lines in expected.lines.values() for line in lines)
        _watch(run, kept, lambda: receiver.size >= size, f"{size} bytes of windows", 900)
        late += dropped(checkpoint)
        assert 0 < late <= expected.dropped  # what the run that died had processed counted there
        assert run.stop() == 0, run.said()
        found = by_key(receiver.lines())
    assert found == expected.lines, _difference(found, expected.lines)
    assert not expected.open, f"{expected.open} keys have open windows: the run ended too early"
    windows = {kind: sum(len(lines) for (each, _), lines in found.items() if each == kind) for kind in WINDOWS}
    given = ", ".join(f"{kind} {count:,}" for kind, count in windows.items())
    return (
        f"{language}: {messages:,} messages to each kind, sent after {sent:.0f} s; windows: {given}; "
        f"{expected.ticks} ticks; {time.monotonic() - began:.0f} s; equal"
    )


def dropped(checkpoint: Path) -> int:
    """Return how many messages were too late for a run."""
    return sum(part["dropped_late"] for part in status_of(checkpoint)["parts"])


def rescale(checkpoint: Path, seed: int, once_more: Callable[..., Run]) -> None:
    """Give a checkpoint that a run has left, most likely with a tick's micro-batch planned, other numbers.

    Args:
        checkpoint: Of the run.
        seed: Of the numbers.
        once_more: Starts a run with the options that remedy a refusal.
    """
    source = random.Random(seed)
    numbers = {"buckets": source.randrange(1, 12)}
    if not read_manifest(checkpoint).is_realtime:
        numbers["partitions"] = source.randrange(1, 5)
    options = [text for name, number in numbers.items() for text in (f"--{name}", str(number))]
    done = wallaroo("state", "rescale", checkpoint, *options)
    if done.returncode and "--stop-when-idle 5, then repeat this command" in done.stderr:
        with once_more("--stop-when-idle", 5) as run:
            assert run.end() == 0, run.said()
        done = wallaroo("state", "rescale", checkpoint, *options)
    assert done.returncode == 0, done.stderr


def calm(language: str, messages: int, folder: Path, *options: object, seed: int = 7) -> str:
    """Send all messages at full speed and kill nothing; return the rate, from the first byte sent to the last batch."""
    addresses = [("127.0.0.1", free_port(seed + number)) for number in range(len(WINDOWS))]
    source = ",".join(f"{host}:{port}" for host, port in addresses)
    with Receiver() as receiver, Run(APPS[language], receiver, folder / "checkpoint", *options, source=source) as run:
        run.ready()
        began, sender = time.monotonic(), Sender(addresses, messages, 1e-9, seed)
        sender.may_end.set()
        total = messages * len(WINDOWS)
        run.wait_while_alive(
            lambda: bool(sender.fault) or run.last("messages_processed") >= total, lambda: f"{total} messages", 900
        )
        assert sender.fault is None, sender.fault
        spent = time.monotonic() - began
        assert run.stop() == 0, run.said()
    return f"{language}: {total:,} messages in {spent:.1f} s, {total / spent / 1000:.0f} thousand messages/s"


def _watch(run: Run, kept: Kept, holds: Any, what: str, seconds: float) -> None:
    """Wait for a condition of a run that goes on, and keep its journal meanwhile."""

    def looked() -> bool:
        assert run.process.poll() is None, f"ended ({run.process.returncode}) before {what}:\n{run.said()}"
        kept.look()
        return bool(holds())

    wait_until(looked, lambda: f"{what}; the run said:\n{run.said()}", seconds, every=LOOK_S)


def _end_left_behind(checkpoint: Path) -> None:
    from wallaroo_runtime.peer.local import stop_left_behind

    if checkpoint.exists():
        stop_left_behind(checkpoint)


def _difference(found: dict[Any, list[str]], wanted: dict[Any, list[str]]) -> str:
    for key in sorted({*found, *wanted}):
        mine, theirs = found.get(key, []), wanted.get(key, [])
        for at in range(max(len(mine), len(theirs))):
            if mine[at : at + 1] != theirs[at : at + 1]:
                return f"window {at} of {key}: {mine[at : at + 1]}, expected {theirs[at : at + 1]}"
    return ""


def main() -> int:
    """Run both languages; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="to each kind of windows")
    parser.add_argument("--seconds", type=float, default=40.0, help="within which they are sent")
    parser.add_argument("--languages", default=",".join(APPS))
    parser.add_argument("--mode", choices=MODES, default="microbatch")
    parser.add_argument("--calm", action="store_true", help="kill nothing, compare nothing, and tell the rate")
    options = parser.parse_args()
    for language in options.languages.split(","):
        print(f"load {os.getloadavg()[0]:.1f}", flush=True)
        with tempfile.TemporaryDirectory(prefix="wallaroo-windows-") as folder:
            place, mode = Path(folder), MODES[options.mode]
            if options.calm:
                print(calm(language, options.messages, place, *mode), flush=True)
            else:
                print(check(language, options.messages, options.seconds, place, *mode), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
