"""Windows over generated messages, while workers and the driver are killed, against the plain reference.

`make windows` runs them over 1,000,000 messages each: windows of 9 s every 3 s by the time of arrival and by the time
in the data, and windows of 7 messages. The reference reads what the journal holds: messages, their times, and ticks.
"""

import argparse
import contextlib
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from life import free_port
from run import TESTS, Receiver, Run, finish, framed, wait_until
from wallaroo.frame import TICK_PORT, read_frame, split_frames
from wallaroo_runtime.ingest import JournalReader

sys.path.insert(0, str(TESTS.parent / "topology-schema" / "vectors"))
from make_windows import Reference, counts, ranges

APP = TESTS / "recovery" / "window" / "app.py"
WINDOWS = {
    "ingest": ranges(9000, 3000),
    "event": ranges(9000, 3000, time="event"),
    "count": counts(7),
}
KEYS = 400
PRIME, BASE = (1 << 61) - 1, 1_000_003
FAULTS = ("worker.after_compute:4", "worker.after_reply:9", "driver.before_record:3")
START_MS, BLOCK = 1_700_000_000_000, 500
# An hour and a half of data; now and then a key is silent for longer than windows wait.
STEP_MS = 5
# When no message came for 18 s, or 5 s in a count window, a key has given out everything; a tick may come 1 s later.
SILENCE_MS = 20_000


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
    """Sends the messages at a rate, in a thread, and waits until they are safe."""

    def __init__(self, address: str, messages: int, rate: int, seed: int) -> None:
        host, _, port = address.rpartition(":")
        self._address, self._messages, self._rate, self._seed = (host, int(port)), messages, rate, seed
        self.is_done = False
        self.fault: BaseException | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            with socket.create_connection(self._address, timeout=60) as connection:
                self._send(connection)
                finish(connection)
        except BaseException as err:
            self.fault = err
        self.is_done = True

    def _send(self, connection: socket.socket) -> None:
        began, sent = time.monotonic(), 0
        source = texts(self._messages, self._seed)
        while block := list(islice(source, BLOCK)):
            connection.sendall(framed(block))
            sent += len(block)
            time.sleep(max(0.0, began + sent / self._rate - time.monotonic()))


def events(journal: Path, window: dict[str, Any]) -> list[dict[str, Any]]:
    """Return messages and ticks of a journal as the reference takes them."""
    found: list[dict[str, Any]] = []
    reader = JournalReader(journal)
    for piece in reader.read(0, reader.end().offset):
        for header, at, _ in split_frames(piece):
            if header.port == TICK_PORT:
                found.append({"sequence": header.sequence, "tick": header.timestamp_ms})
                continue
            data, place = read_frame(piece, at).data, 0
            for sequence in range(header.sequence, header.sequence + header.count):
                end = place + 4 + int.from_bytes(data[place : place + 4], "big")
                own, key, value = data[place + 4 : end].decode().split(" ")
                time_ms = int(own) if window.get("time") == "event" else header.timestamp_ms
                found.append({"sequence": sequence, "key": key, "time": time_ms, "value": int(value)})
                place = end
    return found


def silence(journal: Path) -> int:
    """Return how many milliseconds the last tick is behind the last message."""
    last = {True: 0, False: 0}
    reader = JournalReader(journal)
    for piece in reader.read(0, reader.end().offset):
        for header, _, _ in split_frames(piece):
            last[header.port == TICK_PORT] = header.timestamp_ms
    return last[True] - last[False]


def line(key: str, values: tuple[int, ...]) -> str:
    """Return what the application gives for a window."""
    digest = 0
    for value in values:
        digest = (digest * BASE + value) % PRIME
    return f"{key} {len(values)} {digest}"


def by_key(lines: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in lines:
        found.setdefault(each.partition(" ")[0], []).append(each)
    return found


def expected(journal: Path, kind: str) -> tuple[Reference, list[str]]:
    """Return the reference after all that the journal holds, and its lines."""
    reference = Reference(WINDOWS[kind])
    reference.run(events(journal, WINDOWS[kind]))
    return reference, [line(each.key, each.values) for each in reference.given]


def check(kind: str, messages: int, rate: int, folder: Path, seed: int = 7) -> str:
    """Run one kind of windows through the deaths of `FAULTS`; return what was seen.

    Raises:
        AssertionError: The output differs from the reference's, or something did not die.
    """
    source, checkpoint, fired = f"127.0.0.1:{free_port(seed)}", folder / "checkpoint", folder / "fired"
    fired.mkdir()
    faults = {"WALLAROO_FAULT": ",".join(FAULTS), "WALLAROO_FAULT_DIR": str(fired)}

    def start() -> Run:
        return Run(APP, receiver, checkpoint, "--", "--windows", kind, source=source, **faults)

    began = time.monotonic()
    with Receiver() as receiver, contextlib.ExitStack() as stack:
        run = stack.enter_context(start()).ready()
        stack.callback(_end_left_behind, checkpoint)
        sender = Sender(source, messages, rate, seed)
        wait_until(lambda: run.process.poll() is not None, lambda: f"the death of the driver:\n{run.said()}", 300)
        assert run.process.returncode == -signal.SIGKILL, run.said()
        run = stack.enter_context(start()).ready()
        wait_until(lambda: sender.is_done, lambda: f"{messages} messages to be sent:\n{run.said()}", 1200)
        assert sender.fault is None, sender.fault
        journal = checkpoint / "journal"
        run.wait_while_alive(lambda: silence(journal) >= SILENCE_MS, lambda: "ticks behind the last message", 120)
        reference, wanted = expected(journal, kind)
        run.wait_while_alive(
            lambda: len(receiver.lines()) >= len(wanted),
            lambda: f"{len(wanted)} windows, have {len(receiver.lines())}",
            900,
        )
        assert run.stop() == 0, run.said()
        assert {path.name for path in fired.iterdir()} == set(FAULTS)
        found = by_key(receiver.lines())
    assert found == by_key(wanted), _difference(found, by_key(wanted))
    assert not reference.keys, f"{len(reference.keys)} keys have open windows: the run ended too early"
    ticks = sum("tick" in event for event in events(journal, WINDOWS[kind]))
    spent = time.monotonic() - began
    return f"{kind}: {messages:,} messages, {len(wanted):,} windows, {ticks} ticks, {spent:.0f} s; equal"


def _end_left_behind(checkpoint: Path) -> None:
    from wallaroo_runtime.deploy.service import stop_left_behind

    if checkpoint.exists():
        stop_left_behind(checkpoint)


def _difference(found: dict[str, list[str]], wanted: dict[str, list[str]]) -> str:
    for key in sorted({*found, *wanted}):
        mine, theirs = found.get(key, []), wanted.get(key, [])
        for at in range(max(len(mine), len(theirs))):
            if mine[at : at + 1] != theirs[at : at + 1]:
                return f"window {at} of {key}: {mine[at : at + 1]}, expected {theirs[at : at + 1]}"
    return ""


def main() -> int:
    """Run all kinds; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--kinds", default=",".join(WINDOWS))
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)
    for kind in options.kinds.split(","):
        with tempfile.TemporaryDirectory(prefix="wallaroo-windows-") as folder:
            print(check(kind, options.messages, options.rate, Path(folder)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
