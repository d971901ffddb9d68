"""Changed applications on real Spark: what is accepted goes on exactly where the version before has stopped."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from wallaroo_runtime.storage.journal.writer import JournalWriter

pytestmark = [pytest.mark.jvm, pytest.mark.long]
WALLAROO = str(Path(sys.executable).with_name("wallaroo"))
RUN_SECONDS = 300.0
APP = """
import struct
import wallaroo

def application_setup(args):
    version, first, second = args[args.index("--version") + 1 :][:3]
    builder = wallaroo.ApplicationBuilder("Changing")
    if version == "more":
        # In front of everything: without ports that stay, each number would mean another part now.
        builder.new_pipeline("Extra", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode4))
        builder.to(upper).to_state_partition(count_shared, Total, "totals", key)
        builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", second, encode))
        builder.new_pipeline("Other", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode4))
        builder.to_state_partition(count, Total, "other totals", key)
        builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", second, encode))
    decoder = {"short": decode2, "strict": decode_strictly}.get(version, decode4)
    builder.new_pipeline("Count", wallaroo.TCPSourceConfig("127.0.0.1", "0", decoder))
    if version == "more":
        builder.to(upper)
    builder.to_parallel(split, on_error="fail" if version == "short" else None)
    builder.to_state_partition(count, Total, "totals", key)
    sinks = [wallaroo.TCPSinkConfig("127.0.0.1", first, encode)]
    if version == "two":
        sinks.append(wallaroo.TCPSinkConfig("127.0.0.1", second, encode))
    return builder.to_sinks(sinks).build()

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode4(data):
    return data.decode()

@wallaroo.decoder(header_length=2, length_fmt=">H")
def decode2(data):
    return data.decode()

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_strictly(data):
    return data.decode("ascii")

@wallaroo.computation(name="upper")
def upper(text):
    return text.upper()

@wallaroo.computation_multi(name="split")
def split(text):
    if "poison" in text:
        raise ValueError("no")
    return text.split()

@wallaroo.partition
def key(word):
    return word.lower()

class Total:
    def __init__(self):
        self.count = 0

@wallaroo.state_computation(name="count")
def count(word, state):
    state.count += 1
    return f"{word.lower()} {state.count}", True

@wallaroo.state_computation(name="count shared")
def count_shared(word, state):
    state.count += 1
    return f"{word} {state.count}", True

@wallaroo.encoder
def encode(text):
    return text + "\\n"
"""


class Receiver:
    """Takes what a sink sends."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = str(self.server.getsockname()[1])
        self.data = bytearray()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            # Two sinks may send here at the same time.
            threading.Thread(target=self._take, args=(connection,), daemon=True).start()

    def _take(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                self.data += data

    def lines(self, count: int) -> list[str]:
        """Return what came, as soon as it is so many lines; the run may be over before the last ones are read."""
        deadline = time.monotonic() + 60
        while self.data.count(b"\n") < count and time.monotonic() < deadline:
            self.thread.join(0.02)
        return self.data.decode().splitlines()

    def close(self) -> None:
        with suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.thread.join(20)


@pytest.fixture
def receivers() -> Iterator[tuple[Receiver, Receiver]]:
    pair = Receiver(), Receiver()
    yield pair
    for receiver in pair:
        receiver.close()


class Changing:
    """One checkpoint of the application, run with one version after the other."""

    def __init__(self, directory: Path, receivers: tuple[Receiver, Receiver]) -> None:
        self.app = directory / "changing.py"
        self.app.write_text(APP)
        self.checkpoint = directory / "checkpoint"
        self.checkpoint.mkdir(mode=0o700)
        self.ports = [receiver.port for receiver in receivers]

    def run(self, version: str) -> subprocess.CompletedProcess[str]:
        """Run until all that is in the journal is done."""
        command = [*self.command(version), "--stop-when-idle", "0.5"]
        return subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)

    def command(self, version: str) -> list[str]:
        """Return what runs a version until it is stopped."""
        command = [WALLAROO, "run", str(self.app), "--checkpoint", str(self.checkpoint), "--master", "local[2]"]
        return [*command, "--version", version, *self.ports]

    def journal(self, texts: list[str], width: int = 4, port: int = 0) -> None:
        """Put messages into the journal, as the gateway does while no query runs."""
        writer = JournalWriter(self.checkpoint / "journal")
        encoded = [text.encode() for text in texts]
        data = b"".join(len(text).to_bytes(width, "big") + text for text in encoded)
        writer.append(port, len(texts), [data], timestamp_ms=1)
        writer.close()

    def ported(self) -> dict[str, int]:
        """Return the ports that the checkpoint records."""
        ports: dict[str, int] = json.loads((self.checkpoint / "application.json").read_bytes())["ports"]["parts"]
        return ports


@pytest.fixture
def changing(tmp_path: Path, receivers: tuple[Receiver, Receiver]) -> Changing:
    return Changing(tmp_path, receivers)


def assert_counted(receiver: Receiver, texts: list[str]) -> None:
    """Check that each word came out with 1, 2, 3, ... in this order."""
    expected = Counter(word for text in texts for word in text.split())
    found: dict[str, list[int]] = {}
    for line in receiver.lines(sum(expected.values())):
        word, number = line.split()
        found.setdefault(word, []).append(int(number))
    assert found == {word: list(range(1, count + 1)) for word, count in expected.items()}


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def test_a_safe_change_goes_on_with_journal_state_and_outbox(
    changing: Changing, receivers: tuple[Receiver, Receiver]
) -> None:
    texts = [f"a b w{number % 7}" for number in range(300)]
    succeeded(changing.run("one"))
    changing.journal(texts[:100])
    succeeded(changing.run("one"))
    assert_counted(receivers[0], texts[:100])
    # These wait in the journal under the port of the source, which is the second one of the next version.
    changing.journal(texts[100:200])
    out = succeeded(changing.run("more"))
    assert 'changed since the last run: source "Extra" (0/sources/0) is new' in out
    assert 'changed since the last run: input of step "split" (2/steps/1) was 0/sources/0 and is 2/steps/0' in out
    assert_counted(receivers[0], texts[:200])
    ports = changing.ported()
    assert (ports["2/sources/0"], ports["2/steps/2"], ports["2/sinks/0"]) == (0, 1, 2)
    assert sorted(ports.values()) == list(range(9))
    changing.journal(texts[200:])
    changing.journal(["c", "d", "c"], port=ports["1/sources/0"])
    succeeded(changing.run("more"))
    assert_counted(receivers[0], texts)
    assert_counted(receivers[1], ["c d c"])


def test_a_change_that_needs_a_drain_and_a_step_that_stops_the_query(
    changing: Changing, receivers: tuple[Receiver, Receiver]
) -> None:
    texts = [f"a b w{number % 5}" for number in range(200)]
    succeeded(changing.run("two"))
    changing.journal(texts[:100])
    refused = changing.run("short")
    assert refused.returncode == 1
    assert re.search(r"R790 .+ checkpoint \S+: the journal has 100 unprocessed messages", refused.stderr)
    assert 'framing of source "Count" (0/sources/0) was u32be and is u16be' in refused.stderr
    assert 'sink "Count-2" (0/sinks/1) is gone' in refused.stderr
    succeeded(changing.run("two"))
    assert_counted(receivers[0], texts[:100])
    assert_counted(receivers[1], texts[:100])
    out = succeeded(changing.run("short"))
    assert "changed since the last run: framing of source" in out
    changing.journal(texts[100:], width=2)
    succeeded(changing.run("short"))
    assert_counted(receivers[0], texts)
    assert_counted(receivers[1], texts[:100])
    changing.journal(["a poison"], width=2)
    stopped = changing.run("short")
    assert stopped.returncode == 1
    assert "R611 the query stopped; C501 " in stopped.stderr
    assert 'or give "split" on_error "dead_letter"' in stopped.stderr
    assert_counted(receivers[0], texts)
    assert not list((changing.checkpoint / "dead-letters").glob("*.frames"))


def test_dead_letters_are_replayed_when_the_decoder_is_corrected(
    changing: Changing, receivers: tuple[Receiver, Receiver]
) -> None:
    succeeded(changing.run("strict"))
    changing.journal(["a b", "grün a", "b", "grün"])
    succeeded(changing.run("strict"))
    assert_counted(receivers[0], ["a b", "b"])
    letters = [WALLAROO, "dead-letters"]
    listed = subprocess.run([*letters, "ls", str(changing.checkpoint), "--json"], capture_output=True, check=True)
    assert [json.loads(line)["code"] for line in listed.stdout.splitlines()] == ["C505", "C505"]
    corrected = subprocess.Popen(changing.command("one"), stderr=subprocess.PIPE, text=True)
    try:
        assert corrected.stderr is not None
        assert any("successfully initialized" in line for line in corrected.stderr)
        command = [*letters, "replay", str(changing.checkpoint), "--all"]
        replayed = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
        assert (replayed.returncode, replayed.stdout) == (0, "2 replayed\n")
        assert_counted(receivers[0], ["a b", "b", "grün a", "grün"])
        again = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS)
        assert again.stdout == "0 replayed, 2 were before (--again sends them once more)\n"
    finally:
        corrected.send_signal(signal.SIGTERM)
        corrected.communicate(timeout=RUN_SECONDS)
    assert_counted(receivers[0], ["a b", "b", "grün a", "grün"])
