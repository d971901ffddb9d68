"""Word counts in Spark's real-time mode, as a user runs them, and with processes of it killed."""

import contextlib
import json
import os
import random
import re
import signal
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from support.realtime import (
    APPS,
    REALTIME,
    SHORT,
    WORDS,
    Sender,
    kill_driver,
    lines,
    processes_of_worker,
    receiver,
    wait_for_all,
    wrong,
)
from support.run import TESTS, Receiver, Run, finish, framed, wallaroo

__all__ = ["receiver"]  # the fixture

POISON = TESTS.parent / "runtime" / "tests" / "poison" / "app.py"


def count_over_deaths(language: str, receiver: Receiver, checkpoint: Path) -> Counter[str]:
    """Run the word count, kill its worker and later the supervisor; the totals of what is returned came in order."""
    with Run(APPS[language], receiver, checkpoint, *REALTIME) as run:
        sender = Sender(run.ready(), rate=200, seed=7)
        for number in range(2):
            known = len(lines(receiver))
            run.wait_while_alive(lambda known=known: len(lines(receiver)) > known + 100, lambda: "100 results")  # type: ignore[misc]
            for pid in processes_of_worker(run)[:1]:
                status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                os.kill(int(status[1]) if number else pid, signal.SIGKILL)
        sent = sender.end()
        wait_for_all(receiver, sent, run.said)
        run.wait_for("messages_processed", sum(sent.values()))
        assert run.stop() == 0, run.said()
    assert wrong(lines(receiver), sent) == []
    return sent


GENERATOR = """
import wallaroo

class Many:
    def initial_value(self):
        return b"%0100d" % 0

    def apply(self, message):
        return b"%0100d" % (int(message) + 1) if int(message) < 99_999 else None

def application_setup(args):
    made = wallaroo.source("made", wallaroo.GenSourceConfig(gen=Many())).to(number)
    (out,) = wallaroo.tcp_parse_output_addrs(args)
    return wallaroo.build_application("Many", made.to_sink(wallaroo.TCPSinkConfig(*out, encode)))

@wallaroo.computation("number")
def number(message):
    return int(message)

@wallaroo.encoder
def encode(message):
    return f"{message}\\n"
"""


@pytest.mark.jvm
def test_a_generator_goes_on_as_soon_as_its_messages_are_processed(receiver: Receiver, tmp_path: Path) -> None:
    """Its 13 MB are more than it may be ahead of Spark's commits. While it waits for one, the run is not idle."""
    program = tmp_path / "many.py"
    program.write_text(GENERATOR)
    out = "{}:{}".format(*receiver.listener.getsockname())
    options = (*REALTIME, "--checkpoint", tmp_path / "c", "--stop-when-idle", "5", "--master", "local[2]")
    done = wallaroo("run", program, *options, "--out", out)
    assert done.returncode == 0, done.stderr
    assert lines(receiver) == [str(number) for number in range(100_000)], done.stderr


@pytest.mark.jvm
def test_counts_go_on_over_deaths_of_the_worker(receiver: Receiver, tmp_path: Path) -> None:
    """In Go; the long test has both languages."""
    count_over_deaths("go", receiver, tmp_path / "checkpoint")


@pytest.mark.jvm
@pytest.mark.long
@pytest.mark.parametrize("language", ["go", "python"])
def test_counts_go_on_over_deaths_of_the_worker_and_a_second_run(
    language: str, receiver: Receiver, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    sent = count_over_deaths(language, receiver, checkpoint)
    with Run(APPS[language], receiver, checkpoint, *REALTIME) as run:
        sender = Sender(run.ready(), rate=200, seed=8)
        run.wait_while_alive(lambda: len(lines(receiver)) > sum(sent.values()) + 100, lambda: "100 results more")
        sent += sender.end()
        wait_for_all(receiver, sent, run.said)
        assert run.stop() == 0, run.said()
    assert wrong(lines(receiver), sent) == []


@pytest.mark.long
@pytest.mark.parametrize("language", ["go", "python"])
def test_each_result_comes_once_over_deaths_of_java(language: str, receiver: Receiver, tmp_path: Path) -> None:
    checkpoint, source = tmp_path / "checkpoint", random.Random(11)
    sender: Sender | None = None
    for results in (1, 1, 300):  # the engine of a new query begins before Spark's first task: it dies there, too
        with Run(APPS[language], receiver, checkpoint, *REALTIME) as run:
            run.ready()
            # Go takes any bytes for a text.
            sender = sender or Sender(run, rate=300, seed=9, bad_every=7 if language == "python" else 0)
            known = len(lines(receiver))
            run.wait_while_alive(
                lambda known=known, more=results: len(lines(receiver)) >= known + more,
                lambda: "results",  # type: ignore[misc]
            )
            time.sleep(source.uniform(0, 1 if results == 1 else 3))  # where in a batch it dies is left to chance
            kill_driver(run)  # the gateway outlives it, and the sender notices nothing
            assert run.end(120) != 0
        commits = checkpoint / "spark" / "commits"
        if not [*commits.glob("[0-9]*")]:  # as if it had died in its first commit
            (commits / ".0.c.tmp").touch()
    assert sender is not None
    with Run(APPS[language], receiver, checkpoint, *REALTIME) as run:
        run.ready()
        sent = sender.end()
        wait_for_all(receiver, sent, run.said)
        assert run.stop() == 0, run.said()
    assert wrong(lines(receiver), sent) == []
    letters = letters_of(checkpoint)
    assert (letters.total(), len(letters)) == (sender.bad, sender.bad)
    prune_after_another_run(Run(APPS[language], receiver, checkpoint, *REALTIME), sender.bad)
    with Run(APPS[language], receiver, checkpoint, *REALTIME) as run:
        assert run.ready().stop() == 0, run.said()


def prune_after_another_run(run: Run, letters: int) -> None:
    """Remove all dead letters of earlier runs."""
    with run:
        assert run.ready().stop() == 0, run.said()
    pruned = json.loads(wallaroo("dead-letters", "prune", run.checkpoint, "--all", "--json").stdout)
    assert (pruned["removed"], pruned["kept"]) == (letters, 0)
    assert not letters_of(Path(run.checkpoint))


def letters_of(checkpoint: Path) -> Counter[int]:
    """Return how many dead letters there are of each position."""
    listed = wallaroo("dead-letters", "ls", checkpoint, "--json", "--limit", 1_000_000).stdout.splitlines()
    return Counter(json.loads(line)["position"] for line in listed)


def service(run: Run, name: str) -> list[int]:
    """Return the processes of a run's gateway or egress."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if f"wallaroo_runtime.{name}".encode() in words and str(run.checkpoint).encode() in b" ".join(words):
            found.append(int(entry.name))
    return found


def kill_some(run: Run, receiver: Receiver, source: random.Random) -> None:
    """Kill workers and the egress of a run at drawn moments, then driver and Java."""
    for victims in source.choices((processes_of_worker, lambda run: service(run, "egress")), k=4):
        known = len(lines(receiver))
        run.wait_while_alive(lambda known=known: len(lines(receiver)) > known + 200, lambda: "200 results")  # type: ignore[misc]
        time.sleep(source.uniform(0, 1.5))
        for pid in victims(run)[:1]:
            os.kill(pid, signal.SIGKILL)
    time.sleep(source.uniform(0, 1.5))
    kill_driver(run)
    assert run.end(120) != 0


@pytest.mark.long
@pytest.mark.parametrize(("language", "seed"), [("go", 1), ("python", 2)])
def test_each_result_comes_once_over_borders_of_batches(
    language: str, seed: int, receiver: Receiver, tmp_path: Path
) -> None:
    """Batches of a second, so that the engine is ahead of Spark's commit most of the time; anything is killed."""
    checkpoint, source = tmp_path / "checkpoint", random.Random(seed)
    settings = (*REALTIME, "--conf", SHORT)
    sender: Sender | None = None
    for _ in range(3):
        with Run(APPS[language], receiver, checkpoint, *settings) as run:
            run.ready()
            sender = sender or Sender(run, rate=300, seed=seed, bad_every=7 if language == "python" else 0)
            kill_some(run, receiver, source)
    assert sender is not None
    with Run(APPS[language], receiver, checkpoint, *settings) as run:
        run.ready()
        sent = sender.end()
        run.wait_for("messages_processed", sent.total() + sender.bad)
        assert run.stop() == 0, run.said()
    assert wrong(lines(receiver), sent, may_repeat=True) == []
    letters = letters_of(checkpoint)
    assert (letters.total(), len(letters)) == (sender.bad, sender.bad)


def fail_at(action: str, counts: tuple[int, int, int], receiver: Receiver, checkpoint: Path) -> str:
    """Let a message end a run, and the next run go on; returns what the first one said.

    Some messages have arrived before; some are sent with the one that fails, in front of it and after it. None of those
    after it has arrived when the run has ended, and each total comes once.
    """
    app, known, (before, front, after) = checkpoint.with_name("poison.json"), len(receiver.lines()), counts
    app.write_text(wallaroo("emit", POISON).stdout, encoding="utf-8")
    bad = b"\xff" if action == "decode" else f"k {action}".encode()
    with Run(app, receiver, checkpoint, *REALTIME, "--on-error", "fail") as run, run.ready().connect() as connection:
        connection.sendall(framed([b"k ok"] * before))
        receiver.wait_for_lines(known + before, run)
        connection.sendall(framed([*[b"k ok"] * front, bad, *[b"k ok"] * after]))
        with contextlib.suppress(OSError):
            finish(connection)
        assert run.end() == 1, run.said()
        said = run.said()
    assert len(receiver.lines()) <= known + before + front
    total = known + sum(counts)
    with Run(app, receiver, checkpoint, *REALTIME, "--on-error", "dead_letter") as run:
        receiver.wait_for_lines(total, run.ready())
        assert run.stop() == 0, run.said()
        assert run.last("run")["dead_letters"] == 1
    assert receiver.lines() == [f"k {number + 1}" for number in range(total)]
    return said


@pytest.mark.jvm
def test_on_error_fail_ends_the_run_at_the_message(receiver: Receiver, tmp_path: Path) -> None:
    said = fail_at("mutate", (30, 5, 20), receiver, tmp_path / "checkpoint")
    assert '"code": "R611"' in said and "C501 ValueError: told to, after the state was changed" in said, said
    assert "correct the user code and run again, or run with --on-error dead_letter" in said


@pytest.mark.jvm
@pytest.mark.long
def test_each_result_comes_once_around_messages_that_end_the_run(receiver: Receiver, tmp_path: Path) -> None:
    source = random.Random(5)
    for action in source.sample(["decode", "raise", "wrong", "state-exit"], 3):
        counts = (source.randrange(1, 400), source.randrange(100), source.randrange(400))
        said = fail_at(action, counts, receiver, tmp_path / "checkpoint")
        assert '"code": "R611"' in said, said


def committed(checkpoint: Path) -> int:
    """Return how many messages Spark's last commit has."""
    numbers = [int(path.name) for path in (checkpoint / "spark" / "commits").iterdir() if path.name.isdigit()]
    planned = (checkpoint / "spark" / "offsets" / str(max(numbers))).read_text()
    return int(json.loads(planned.splitlines()[-1])["sequence"])


def send_until_it_ends(run: Run, connection: socket.socket) -> None:
    """Send words on a connection, 300 in a second, as long as somebody takes them."""
    with contextlib.suppress(OSError):
        while run.process.poll() is None:
            connection.sendall(framed([random.choice(WORDS).encode()]))
            time.sleep(1 / 300)


@pytest.mark.jvm
@pytest.mark.long
def test_a_stop_commits_what_has_left(receiver: Receiver, tmp_path: Path) -> None:
    """Batches of a second: often Spark commits one when the stop comes, and the engine has gone on."""
    checkpoint, source = tmp_path / "checkpoint", random.Random(3)
    for _ in range(5):
        with Run(APPS["go"], receiver, checkpoint, *REALTIME, "--conf", SHORT) as run, run.ready().connect() as sender:
            known = len(lines(receiver))
            threading.Thread(target=send_until_it_ends, args=(run, sender), daemon=True).start()
            run.wait_while_alive(lambda known=known: len(lines(receiver)) > known + 200, lambda: "200 results")  # type: ignore[misc]
            time.sleep(source.uniform(0, 1.5))
            assert run.stop() == 0, run.said()
        assert committed(checkpoint) == len(lines(receiver)), "the next run repeats what has left"
        logged = (checkpoint / "logs" / "spark.log").read_text()
        assert not re.search("RealTimeModeAllowlist|SO_KEEPALIVE", logged), "each start says them, and nothing is wrong"
