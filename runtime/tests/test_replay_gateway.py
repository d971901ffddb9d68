"""Dead letters on their way to a gateway: each is journaled once, however often command and gateway are killed."""

import copy
import itertools
import json
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.gateway import in_thread
from support.part import journal_request
from support.service import Place, code_of, listening
from wallaroo.frame import DEAD_LETTER_PORT, REPLAY_PORT, encode_frame, read_frame, split_frames
from wallaroo.worker._proto import worker_pb2 as worker
from wallaroo_runtime.checkpoint import replay_step
from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.gateway.config import Limits
from wallaroo_runtime.gateway.gateway import Gateway
from wallaroo_runtime.gateway.service import GatewayHost
from wallaroo_runtime.gateway.worker_calls import worker_maker, worker_splitter
from wallaroo_runtime.peer.replay import sending_to
from wallaroo_runtime.plan.port import first_ports
from wallaroo_runtime.service.client import close_channels
from wallaroo_runtime.service.credential import Listen
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.service.local import socket_in
from wallaroo_runtime.service.server import serve
from wallaroo_runtime.storage.journal.head import write_committed
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.replay import Block, write_block
from wallaroo_runtime.storage.journal.segment import list_segments
from wallaroo_runtime.topology.load import load_document

VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors"
WORD_COUNT = json.loads((VECTORS / "topologies" / "valid" / "word_count.json").read_bytes())
QUERY = "0b9a1f60-1111-2222-3333-444455556666"
POINTS = ("replay.before_send", "replay.before_mark", "replay.before_end")


class Killed(BaseException):
    """In the place of SIGKILL, which a test would not survive."""


@contextmanager
def running(directory: Path, **config: Any) -> Iterator[Gateway]:
    request = journal_request(fsync_interval_ms=1, visits=["visit"], **config)
    gateway = Gateway(directory, request, worker_splitter, worker_maker, limits=Limits(segment_bytes=80))
    with in_thread(gateway):
        yield gateway


@contextmanager
def serving(checkpoint: Path) -> Iterator[Place]:
    """Run the gateway of a checkpoint as its driver would."""
    directory = checkpoint / "gateway"
    directory.mkdir(exist_ok=True)
    host = GatewayHost(directory, "local")
    with socket_in(directory) as path:
        server, _ = serve("gateway", Listen(f"unix:{path}"), host.answer)
        try:
            yield listening(Place(Service("gateway", f"unix:{path}"), host, server))
        finally:
            server.stop(None).wait()
            host.close()
            os.close(host.lock_file)
            close_channels()


def block(*names: str) -> bytes:
    return encode_frame([worker.DeadLetter(step=name).SerializeToString() for name in names], port=REPLAY_PORT)


def journaled(directory: Path) -> list[list[str]]:
    """Return what readers of the journal find: the letters' steps, block by block."""
    reader = JournalReader(directory / "journal")
    found = []
    first = list_segments(directory / "journal")[0]
    for data in reader.read(first.base, reader.end().offset):
        for header, at, _ in split_frames(data):
            if header.port == REPLAY_PORT:
                values = read_frame(data, at).values()
                found.append([worker.DeadLetter.FromString(value).step for value in values])
    return found


def test_a_block_is_in_the_journal_when_it_is_answered_and_there_once(tmp_path: Path) -> None:
    with running(tmp_path) as gateway:
        assert gateway.replays.ask(0, b"") == 0
        assert gateway.replays.ask(5, block("a", "b")) == 5
        assert journaled(tmp_path) == [["a", "b"]]
        assert [gateway.replays.ask(number, block("c")) for number in (5, 4)] == [5, 5]
    with running(tmp_path) as gateway:
        assert gateway.replays.ask(5, block("a", "b")) == 5
        assert gateway.replays.ask(6, block("c")) == 6
        assert JournalReader(tmp_path / "journal").end().messages == 3
    assert journaled(tmp_path) == [["a", "b"], ["c"]]


steps = st.lists(st.sampled_from(("send", "restart", "again", "visit", "torn", "older")), min_size=4, max_size=9)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(done=steps, is_removed=st.booleans())
def test_a_gateway_that_dies_takes_each_block_once(tmp_path: Path, done: list[str], is_removed: bool) -> None:
    directory = tmp_path / str(len(list(tmp_path.iterdir())))
    expected: list[list[str]] = []
    numbers = itertools.count(1)
    last = 0
    with ExitStack() as stack:

        def begin() -> Gateway:
            stack.close()
            if is_removed and directory.exists():
                write_committed(directory / "journal", JournalReader(directory / "journal").end().offset)
            return stack.enter_context(running(directory))

        gateway = begin()
        for each in done:
            if each == "send":
                last = next(numbers)
                assert gateway.replays.ask(last, block(str(last))) == last
                expected.append([str(last)])
            elif each == "visit":
                gateway.visits.ask("visit", bytes(80))
            elif each == "torn":  # it died when it had noted a block, before it was in the journal
                stack.close()
                end = JournalReader(directory / "journal").end().offset
                write_block(directory / "journal", Block(next(numbers), end, last))
                gateway = begin()
            elif each == "restart":
                gateway = begin()
            elif last:
                assert gateway.replays.ask(last - (each == "older"), block("twice")) == last
        assert gateway.replays.last == last
    found = journaled(directory)
    assert found == expected[len(expected) - len(found) :] and (is_removed or len(found) == len(expected))


def test_what_a_gateway_does_not_take(tmp_path: Path) -> None:
    no_letter = encode_frame([b"\xff"], port=REPLAY_PORT)
    frames = (b"x" * 50, encode_frame([b""], port=1), encode_frame([], port=REPLAY_PORT), 2 * block("a"), no_letter)
    with running(tmp_path, backlog_bytes=1) as gateway:
        assert [code_of(lambda frame=frame: gateway.replays.ask(1, frame)) for frame in frames] == ["R777"] * 5
        gateway.replays.ask(1, block("a"))
        assert code_of(lambda: gateway.replays.ask(2, block("b"), seconds=0.1)) == "R777"  # nothing is committed
    assert journaled(tmp_path) == [["a"]]
    (tmp_path / "journal" / "replay").write_bytes(b"damaged")
    assert code_of(lambda: Gateway(tmp_path, journal_request(), worker_splitter, worker_maker)) == "R612"


def letter(number: int) -> worker.DeadLetter:
    return worker.DeadLetter(
        code="C501", path="0/steps/1", step="Count Word", key=b"bee", has_key=True, sequence=number, port=0,
        input=b"bee", encoding=17, preview=f"letter {number}", error="no", traceback="x" * 100,
    )  # fmt: skip


def checkpoint_in(path: Path, count: int) -> Path:
    """Make a checkpoint with letters in the files of two micro-batches."""
    folder = path / "dead-letters"
    folder.mkdir(parents=True)
    for batch in (1, 2):
        values = [letter(number).SerializeToString() for number in range(count) if number % 2 == batch - 1]
        if values:
            (folder / f"{QUERY}-{batch}-0.frames").write_bytes(encode_frame(values, port=DEAD_LETTER_PORT))
    ports = first_ports(load_document(WORD_COUNT)).to_json()
    manifest = {"format_version": 1, "topology": WORD_COUNT, "shuffle_partitions": 1, "buckets_per_partition": 4}
    (path / "application.json").write_text(json.dumps(manifest | ports))
    return path


def rename(checkpoint: Path) -> None:
    """Run a version of the program in which the step of the letters has another name, and another place."""
    topology = copy.deepcopy(WORD_COUNT)
    (line,) = topology["pipelines"]
    more = copy.deepcopy(line["steps"][0]) | {"name": "more", "path": "0/steps/1", "inputs": ["0/steps/0"]}
    line["steps"].insert(1, more)
    line["steps"][2] |= {"name": "Tally", "path": "0/steps/2", "inputs": ["0/steps/1"]}
    line["sinks"][0]["inputs"] = ["0/steps/2"]
    manifest = json.loads((checkpoint / "application.json").read_text()) | {"topology": topology}
    ports = first_ports(load_document(topology)).to_json()
    (checkpoint / "application.json").write_text(json.dumps(manifest | ports))


def sequences(checkpoint: Path, step: str = "Count Word", at: str = "0/steps/1") -> Counter[int]:
    """Count the letters in the journal by their sequence; all are of this step."""
    reader = JournalReader(checkpoint / "gateway" / "journal")
    found: Counter[int] = Counter()
    for data in reader.read(0, reader.end().offset):
        for header, start, _ in split_frames(data):
            assert header.port == REPLAY_PORT
            letters = list(map(worker.DeadLetter.FromString, read_frame(data, start).values()))
            assert {(each.step, each.path) for each in letters} == {(step, at)}
            found.update(each.sequence for each in letters if not each.traceback)
    return found


kills = st.lists(st.tuples(st.sampled_from(POINTS), st.integers(1, 4), st.booleans()), max_size=5)


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(0, 9), killed=kills, size=st.integers(1, 600), renamed=st.booleans(), data=st.data())
def test_a_command_that_is_killed_replays_each_letter_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, killed: Any, size: int, renamed: bool, data: Any
) -> None:
    checkpoint = checkpoint_in(tmp_path / str(len(list(tmp_path.iterdir()))), count)
    options, place = list[str](), ("Count Word", "0/steps/1")
    if renamed:
        rename(checkpoint)
        options, place = ["--step", "Count Word", "--as", "Tally"], ("Tally", "0/steps/2")
    monkeypatch.setattr(replay_step, "BLOCK_BYTES", size)
    ids = [f"{1 + number % 2}-0-{number // 2}" for number in range(count)]

    def run(die: Callable[[str], None]) -> None:
        monkeypatch.setattr(replay_step, "reach", die)
        chosen = data.draw(st.lists(st.sampled_from(ids), max_size=4)) if ids else []
        wanted = chosen or ["--all"]
        with suppress(Killed):
            assert cli.main(["dead-letters", "replay", str(checkpoint), *wanted, *options]) == 0

    with ExitStack() as stack:
        stack.enter_context(serving(checkpoint))
        for point, times, restarts in killed:
            left = itertools.count(times - 1, -1)

            def die(name: str, point: str = point, left: Iterator[int] = left) -> None:
                if name == point and next(left) == 0:
                    raise Killed

            run(die)
            assert set(sequences(checkpoint, *place).values()) <= {1}
            if restarts:
                stack.close()
                stack.enter_context(serving(checkpoint))
        monkeypatch.setattr(replay_step, "reach", lambda name: None)
        assert cli.main(["dead-letters", "replay", str(checkpoint), "--all", *options]) == 0
        assert sequences(checkpoint, *place) == Counter(range(count))
    marks = checkpoint / "dead-letters" / "replayed"
    assert sorted(set(marks.read_text().split()) if count else ()) == sorted(ids)


def test_letters_cross_in_chunks(tmp_path: Path) -> None:
    (tmp_path / "gateway").mkdir()
    with serving(tmp_path), sending_to(tmp_path) as send:
        large = encode_frame([worker.DeadLetter(input=bytes(5 << 20)).SerializeToString()], port=REPLAY_PORT)
        assert (send(0), send(3, large), send(3, large)) == (0, 3, 3)
    assert len(journaled(tmp_path / "gateway")) == 1
    with socket.socket(socket.AF_UNIX) as left, socket_in(tmp_path / "gateway") as path:
        left.bind(path)
    with sending_to(tmp_path) as send:  # the socket of a gateway that was killed
        assert code_of(lambda: send(0)) == "R777"


def test_a_command_says_why_nothing_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = checkpoint_in(tmp_path / "checkpoint", 3)
    assert cli.main(["dead-letters", "replay", str(checkpoint), "--all"]) == 1
    assert capsys.readouterr().err == (
        "R777 dead letters of steps cannot be replayed; the application does not run\n"
        "  fix: run the application on this machine, in micro-batches, then give the command again\n"
    )
    path = checkpoint / "application.json"
    manifest = json.loads(path.read_text())
    for more, reason in (
        ({"mode": "realtime"}, "the application runs in real-time mode"),
        ({"services": {"gateway in": "id"}}, "the journal is at a remote gateway"),
    ):
        path.write_text(json.dumps(manifest | more))
        assert cli.main(["dead-letters", "replay", str(checkpoint), "1-0-0"]) == 1
        assert f"1-0-0 cannot be replayed; {reason}" in capsys.readouterr().err
    path.write_text(json.dumps({"format_version": 1, "topology": WORD_COUNT}))
    assert cli.main(["dead-letters", "replay", str(checkpoint), "1-0-0"]) == 1
    assert "R698" in capsys.readouterr().err


def test_a_step_that_was_renamed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = checkpoint_in(tmp_path / "checkpoint", 3)
    rename(checkpoint)

    def said(*arguments: str) -> str:
        cli.main(["dead-letters", "replay", str(checkpoint), *arguments])
        return capsys.readouterr().err.replace(str(checkpoint), "CHECKPOINT")

    assert said("1-0-0") == (
        "0 replayed, 1 cannot be\n"
        'R621 dead letter 1-0-0 cannot be replayed; "Count Word" (0/steps/1) is no longer in the application, '
        'whose state steps are "Tally"\n'
        "  fix: if it was renamed, say what it is called now: `wallaroo dead-letters replay CHECKPOINT --all "
        "--step 'Count Word' --as Tally`; else take its input with "
        "`wallaroo dead-letters show CHECKPOINT 1-0-0 --input FILE`\n"
    )
    assert '--as "Tali" is not the name of one of its state steps, which are "Tally"' in said("1-0-0", "--as", "Tali")
    assert "--as with --all would send the letters of all steps to one" in said("--all", "--as", "Tally")
    with serving(checkpoint):
        assert said("1-0-0", "--as", "Tally") == said("1-0-1", "--as", "0/steps/2") == "1 replayed\n"
    assert sequences(checkpoint, "Tally", "0/steps/2") == Counter({0: 1, 2: 1})
