"""Steps whose messages come from sources with and without event time use the time of arrival."""

from pathlib import Path

import pytest

from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.testing import Message, run

PROGRAM = """
from datetime import timedelta

import wallaroo

@wallaroo.line_decoder(event_time=lambda line: int(line.split()[0]))
def timed(line):
    return line.decode()

@wallaroo.line_decoder
def untimed(line):
    return line.decode()

@wallaroo.key_extractor
def by_word(line):
    return line.split()[1]

@wallaroo.state_computation("now", state=list, ttl=timedelta(seconds=60))
def now(line, state, timers):
    assert not line.endswith("fails")
    timers.set("end", after=timedelta(seconds=1))
    return f"{line} {timers.now_ms}"

@now.timer("end")
def end(key, state, time):
    return f"end {time}"

class Lines(wallaroo.Aggregation):
    def initial_accumulator(self):
        return []

    def update(self, line, lines):
        lines.append(line)

    def combine(self, first, second):
        return first + second

    def output(self, key, lines):
        return str(len(lines))

@wallaroo.line_encoder
def encode(text):
    return text

def application_setup(args):
    first = wallaroo.source("timed", wallaroo.TCPSourceConfig("127.0.0.1", 7010, timed)).key_by(by_word)
    second = wallaroo.source("untimed", wallaroo.TCPSourceConfig("127.0.0.1", 7011, untimed)).key_by(by_word)
    both = first if "alone" in args else first.merge(second)
    step = now if "timers" in args else wallaroo.range_windows(wallaroo.seconds(1)).over(Lines)
    return wallaroo.build_application("Both", both.to(step).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)))
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    file = tmp_path / "both.py"
    file.write_text(PROGRAM)
    return str(file)


def test_timers_of_sources_with_and_without_times_go_by_arrival(program: str) -> None:
    with run(program, ["timers"]) as app:
        app.send([b"1000 x"], "timed")
        begin = int(app.output()[0].split()[-1])
        app.advance(0.5)
        app.send([b"9 x"], "untimed")
        app.send([b"1500 x", b"990000 x"], "timed")
        app.advance(1)
        assert b"".join(app.output()).decode().splitlines() == [
            f"1000 x {begin}", f"9 x {begin + 500}", f"1500 x {begin + 500}", f"990000 x {begin + 500}",
            f"end {begin + 1500}",
        ]  # fmt: skip
        assert begin > 1_600_000_000_000 and not app.dead_letters


def test_windows_of_sources_with_and_without_times_go_by_arrival(program: str) -> None:
    with run(program) as app:
        app.send([b"1000 x"], "timed")
        app.send([b"9 x"], "untimed")
        app.send([b"1500 x", b"990000 x"], "timed")
        app.advance(3)
        assert app.output()[0] == b"4\n" and not app.dead_letters


def test_timers_of_sources_with_times_go_by_these(program: str) -> None:
    with run(program, ["timers", "alone"]) as app:
        app.send([b"1000 x", b"3000 x"], "timed")
        assert app.output() == [b"1000 x 1000\n", b"end 2000\n", b"3000 x 3000\n"]


def test_dead_letters_have_the_time_of_their_message(program: str) -> None:
    lines = [b"1000 x", b"7000", b"x", b"3000 x fails"]  # no word: its key fails; no time: its source fails
    for args, times in ((["timers", "alone"], [7000, None, 3000]), (["timers"], [None] * 3)):
        with run(program, args) as app:
            app.send(lines, "timed")
            written = [letter.timestamp_ms for letter in app._engine.written_letters]
            assert written == [app.now_ms if time is None else time for time in times]


@pytest.mark.parametrize("message", [Message(b"5 x", time_ms=7), Message(b"5 x", b"k")])
def test_a_payload_over_tcp_has_neither_time_nor_key(program: str, message: Message) -> None:
    with run(program) as app:
        with pytest.raises(DiagnosticError, match=r'R721 source "timed" cannot take b.5 x.; .* neither key nor time'):
            app.send([message], "timed")
        assert not app.output()
