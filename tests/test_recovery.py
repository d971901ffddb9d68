"""Workers and tasks killed while a call is in flight: every message counts once, and no stale state is used."""

import contextlib
import json
import os
import random
import signal
import sys
import zlib
from collections import Counter
from pathlib import Path

import pytest

from support.run import TESTS, Receiver, Run, framed, wait_until, wallaroo

pytestmark = pytest.mark.jvm
FOLDER = TESTS / "recovery"
KILLS = 7
ADDRESSES = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")


def app(language: str) -> Path:
    return FOLDER / "app.py" if language == "python" else FOLDER


def begun(folder: Path, name: str, run: Run) -> tuple[int, int]:
    """Wait until a computation is inside the call; returns the ids of its process and of the parent."""
    file = folder / f"{name}.begun"
    run.wait_while_alive(file.exists, lambda: f"{name} to be in flight")
    pid, parent = map(int, file.read_text(encoding="ascii").split())
    assert Path(f"/proc/{pid}").exists()
    assert not (folder / f"{name}.go").exists(), "the call would not be in flight"
    return pid, parent


def unanswered(run: Run) -> int:
    """Count the worker's processes that left a call unanswered, as the supervisor has recorded it."""
    logs = (run.checkpoint / "logs").glob("worker-*.log*")
    return sum(log.read_bytes().count(b" of the worker left a call unanswered]") for log in logs)


def go(folder: Path, name: str) -> None:
    (folder / f"{name}.go").touch()


def assert_exact(lines: list[str], expected: Counter[str]) -> None:
    """Assert that each word's counts are 1, 2, 3, ... and each sum goes on where the one before it ended."""
    counts: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    for line in lines:
        word, count, before, after = line.split(" ")
        counts[word] += 1
        assert int(count) == counts[word], line
        assert int(before) == sums[word], f"{line}: state that was never told of; expected {sums[word]}"
        sums[word] = int(after)
    assert counts == expected


def children(pid: int) -> list[int]:
    """Return a process's children, their children, and so on."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, task.read_text().split()):
                found += [child, *children(child)]
    return found


def task_processes(run: Run) -> list[int]:
    """Return the Python processes that run Spark's tasks: forks of the daemon for `pyspark.worker`."""
    daemons = [pid for pid in children(run.process.pid) if is_task_daemon(pid)]
    return [pid for pid in daemons if parent_of(pid) in daemons]


def is_task_daemon(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "wallaroo-tasks"
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended since its parent was asked


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def bucket_of(word: str) -> int:
    """Compute the bucket as the specification says; two shuffle partitions have eight, by turns."""
    return (zlib.crc32(word.encode()) * 0x9E3779B1 % (1 << 32)) * 8 >> 32


def words_run(folder: Path) -> list[str]:
    """Return the word of every run of the state computation."""
    file = folder / "runs"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def is_ahead(word: str, held: str) -> bool:
    """Say whether a word that ran before `held` was answered: another bucket of the same task, which calls in turn."""
    bucket, other = bucket_of(word), bucket_of(held)
    return bucket != other and bucket % 2 == other % 2


@pytest.mark.long
@pytest.mark.parametrize("language", ["python", "go"])
def test_worker_killed_while_a_call_is_in_flight(language: str, tmp_path: Path) -> None:
    rng = random.Random(5)
    expected: Counter[str] = Counter()
    killed, recorded = set(), 0
    options = ("--folder", tmp_path)
    with Receiver() as receiver, Run(app(language), receiver, tmp_path / "checkpoint", *options) as run:
        run.ready()
        for number in range(KILLS):
            name, before = f"{'stage' if number % 2 else 'hold'}-{number}", unanswered(run)
            texts = [" ".join(rng.choices("abcdefghij", k=5)) for _ in range(300)]
            texts.insert(150, f"{name} a")
            expected.update(word for text in texts for word in text.split(" "))
            run.send(framed(text.encode() for text in texts))
            pid, parent = begun(tmp_path, name, run)
            # A process's parent, a worker or a supervisor, must be survived, too; a dead supervisor records nothing.
            victim = parent if language == "python" and number >= KILLS - 2 else pid
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda pid=pid: not alive(pid), lambda pid=pid: f"the end of {pid}")  # type: ignore[misc]
            killed.add(victim)
            go(tmp_path, name)
            receiver.wait_for_lines(expected.total(), run)
            assert unanswered(run) > before or victim == parent, "no task waited for the process that was killed"
            recorded += victim == pid
        assert len(killed) == KILLS
        assert recorded >= 5
        notes = [str(report.get("note")) for report in run.reports]
        assert any(each.startswith('worker "main", process ') and "it was ended by SIGKILL" in each for each in notes)
        assert_exact(receiver.lines(), expected)
        assert run.last("dead_letters") == 0
        assert run.stop() == 0, run.said()


def alive(pid: int) -> bool:
    """Say whether a process still runs; one that waits to be reaped does not."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def kill_tasks_before_their_commit(program: Path, folder: Path, rounds: int) -> tuple[list[str], Counter[str]]:
    """Kill Spark's tasks while some calls are answered and one is held; returns the output and what was sent."""
    words = [f"word{i}" for i in range(60)]
    expected: Counter[str] = Counter()
    with Receiver() as receiver, Run(program, receiver, folder / "c", "--folder", folder) as run:
        run.ready()

        def send(texts: list[str]) -> None:
            expected.update(word for text in texts for word in text.split(" "))
            run.send(framed(text.encode() for text in texts))

        send([" ".join(words)])
        receiver.wait_for_lines(expected.total(), run)
        repeated = 0
        for number in range(rounds):
            sent, name = len(words_run(folder)), f"hold-{number}"
            send([" ".join([*words[:30], name, *words[30:]])])
            begun(folder, name, run)
            # Copies in the worker that are now ahead of what Spark has committed.
            ahead = {word for word in words_run(folder)[sent:] if is_ahead(word, name)}
            for victim in task_processes(run):
                os.kill(victim, signal.SIGKILL)
            go(folder, name)
            receiver.wait_for_lines(expected.total(), run)
            runs = Counter(words_run(folder)[sent:])
            repeated += sum(runs[word] > 1 for word in ahead)
            send([" ".join(words)])
            receiver.wait_for_lines(expected.total(), run)
        assert repeated, "no call was answered, killed before the commit, and repeated"
        assert run.stop() == 0, run.said()
        return receiver.lines(), expected


@pytest.mark.long
@pytest.mark.parametrize("language", ["python", "go"])
def test_task_killed_between_reply_and_commit_leaves_no_stale_copy(language: str, tmp_path: Path) -> None:
    assert_exact(*kill_tasks_before_their_commit(app(language), tmp_path, 4))


@pytest.mark.long
def test_a_stale_copy_would_be_noticed(tmp_path: Path) -> None:
    """Run the same with a worker that uses the copy at hand, whatever version is asked for."""
    program = app("python")
    document = json.loads(wallaroo("emit", program, "--folder", tmp_path, *ADDRESSES).stdout)
    wrong_worker = str(TESTS / "conformance" / "wrong_worker.py")
    document["workers"][0]["command"] = [sys.executable, wrong_worker, "stale-copy", str(program)]
    file = tmp_path / "topology.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    lines, expected = kill_tasks_before_their_commit(file, tmp_path, 2)
    with pytest.raises(AssertionError):
        assert_exact(lines, expected)
