"""`wallaroo dead-letters`: what it lists and shows, and what can be replayed."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.manifest import change_manifest, put_manifest
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.directory import default_directory
from wallaroo_runtime.checkpoint.registry import registered
from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.system.lock import TRY, take_lock
from wallaroo_runtime.system.process import process_start_time

VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors"
WORD_COUNT = json.loads((VECTORS / "topologies" / "valid" / "word_count.json").read_bytes())
QUERY = "0b9a1f60-1111-2222-3333-444455556666"
DECODER = pb.DeadLetter(
    code="C505", path="0/sources/0", step="Split and Count", sequence=7, port=0, input=b"\xff\x00payload",
    preview="b'\\xff\\x00payload'", error="UnicodeDecodeError: invalid start byte", timestamp_ms=1_600_000_000_123,
    traceback='File "app.py", line 70, in decode\n    return payload.decode()',
)  # fmt: skip
STATE = pb.DeadLetter(
    code="C501", path="0/steps/1", step="Count Word", key=b"bee", has_key=True, sequence=8, port=0, input=b"bee",
    encoding=16, preview="'bee'", error="ValueError: \x1b[2J no", timestamp_ms=1_600_000_000_456,
)  # fmt: skip


def write(checkpoint: Path, name: str, *letters: pb.DeadLetter) -> None:
    folder = checkpoint / "dead-letters"
    folder.mkdir(parents=True, exist_ok=True)
    frames = b"".join(encode_frame([letter.SerializeToString()], port=DEAD_LETTER_PORT) for letter in letters)
    (folder / f"{QUERY}-{name}.frames").write_bytes(frames)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint"
    write(path, "10-0", DECODER)
    write(path, "2-1", STATE, DECODER)
    for file in (path / "dead-letters").iterdir():
        os.utime(file, (1_700_000_000.125, 1_700_000_000.125))
    put_manifest(path, WORD_COUNT)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["dead-letters", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


class Receiver:
    """A source that takes what is sent and acknowledges by its end."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(20)
        self.port: int = self.server.getsockname()[1]
        self.taken: list[bytes] = []
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as file:
                self.taken.append(file.read())

    def close(self) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.thread.join(20)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


def test_ls_in_order_of_batches_with_stable_ids(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "ls", checkpoint)
    assert code == 0
    assert out.splitlines() == [
        "id            time                      code   step                  key               position  error"
        "                                     preview",
        "2-1-0         2023-11-14T22:13:20.125Z  C501   Count Word            bee                      8  "
        "ValueError: \\x1b[2J no                    'bee'",
        "2-1-1         2023-11-14T22:13:20.125Z  C505   Split and Count                                7  "
        "UnicodeDecodeError: invalid start byte    b'\\xff\\x00payload'",
        "10-0-0        2023-11-14T22:13:20.125Z  C505   Split and Count                                7  "
        "UnicodeDecodeError: invalid start byte    b'\\xff\\x00payload'",
    ]


def test_ls_filters_limits_and_json(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def ids(*arguments: object) -> list[str]:
        code, out, _ = run(capsys, "ls", checkpoint, "--json", *arguments)
        assert code == 0
        return [json.loads(line)["id"] for line in out.splitlines()]

    assert ids() == ["2-1-0", "2-1-1", "10-0-0"]
    assert ids("--code", "C505") == ["2-1-1", "10-0-0"]
    assert ids("--code", "C505", "--limit", 1) == ["2-1-1"]
    assert ids("--step", "Count Word") == ids("--step", "0/steps/1") == ["2-1-0"]
    assert ids("--limit", 0) == []


def test_ls_names_the_checkpoint_of_a_program(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    app = tmp_path / "word_count.py"
    app.touch()
    code, _, err = run(capsys, "ls", app)
    assert code == 2
    assert "it is no checkpoint, and no run of it has left one; --engine memory leaves none\n" in err
    place = default_directory("Word Count", "python", app)
    place.parent.mkdir(parents=True)
    checkpoint.rename(place)
    code, out, _ = run(capsys, "ls", app)
    assert (code, len(out.splitlines())) == (0, 4)
    code, _, err = run(capsys, "ls", tmp_path / "gone.py")
    assert (code, err) == (
        2,
        f"R616 {tmp_path / 'gone.py'} cannot be read; there is no such checkpoint or program, and no application of "
        "this name runs\n  fix: correct the path or its permissions, or give another path\n",
    )
    with registered(place, "clicks p1"), registered(place, "full"):
        # A process has one file there: the later run's.
        assert 'runs; these run: "full"\n' in run(capsys, "ls", "gone")[2]


def test_show_everything(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", checkpoint, "10-0-0")
    assert code == 0
    assert out == (
        "id        10-0-0\n"
        "time      2023-11-14T22:13:20.125Z\n"
        "code      C505\n"
        "step      Split and Count (0/sources/0)\n"
        "position  7\n"
        "error     UnicodeDecodeError: invalid start byte\n"
        "preview   b'\\xff\\x00payload'\n"
        "replayed  no\n"
        "\ntraceback\n"
        '  File "app.py", line 70, in decode\n'
        "      return payload.decode()\n"
        "\ninput, 9 bytes, as received\n"
        "  00000000  ff 00 70 61 79 6c 6f 61 64                       ..payload\n"
    )
    code, out, _ = run(capsys, "show", checkpoint, "2-1-0", "--json")
    assert json.loads(out)["input"] == {"base64": "YmVl"}


def test_show_writes_the_input_to_a_file(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "show", checkpoint, "2-1-1", "--input", tmp_path / "input") == (0, "", "")
    assert (tmp_path / "input").read_bytes() == DECODER.input


def test_the_checkpoint_of_the_last_run_of_a_program_is_found(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    app = tmp_path / "app.tar.gz"
    app.touch()
    with registered(checkpoint, "clicks", app):
        pass
    assert "no run of it has left one" in run(capsys, "ls", app)[2]  # because the checkpoint refused this run
    with registered(tmp_path / "elsewhere", "clicks", app) as note_chosen:
        note_chosen()
    assert "no run of it has left one" in run(capsys, "ls", app)[2]  # because this run left no checkpoint
    with registered(checkpoint, "clicks", app) as note_chosen:
        note_chosen()
    code, out, _ = run(capsys, "ls", app)
    assert (code, len(out.splitlines())) == (0, 4)
    shutil.copytree(checkpoint, default_directory("clicks", "python", app))
    code, _, err = run(capsys, "ls", app)
    assert code == 2
    assert "this program has 2 checkpoints" in err and str(checkpoint) in err


@pytest.mark.parametrize("wanted", ["9-9-9", "2-1-2", "2-1", "word"])
def test_an_id_that_does_not_exist(checkpoint: Path, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "show", checkpoint, wanted)
    assert code == 2
    assert err == (
        f"R720 {checkpoint} has no dead letter {wanted}; it has the ids in `wallaroo dead-letters ls {checkpoint}`\n"
        "  fix: use a name from this list\n"
    )


def test_a_damaged_file(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = checkpoint / "dead-letters" / f"{QUERY}-2-1.frames"
    path.write_bytes(path.read_bytes()[:-1])
    code, out, err = run(capsys, "ls", checkpoint)
    assert (code, len(out.splitlines())) == (1, 2)
    assert err.startswith(f"R698 {path} is damaged; ")


@pytest.mark.parametrize("choice", [("--step", "Count"), ("--code", "C999")])
def test_a_replay_of_no_letter_says_so(
    checkpoint: Path, choice: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "replay", checkpoint, "--all", *choice) == (
        0, f"0 replayed; no dead letter is chosen, `wallaroo dead-letters ls {checkpoint} --group` shows codes and "
        "steps\n", "",
    )  # fmt: skip


def test_replay_sends_what_a_decoder_failed_on_and_marks_it(
    checkpoint: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    to = f"127.0.0.1:{receiver.port}"
    code, out, err = run(capsys, "replay", checkpoint, "--all", "--to", to)
    assert (code, out) == (1, "2 replayed, 1 cannot be\n")
    assert err == (
        'R621 dead letter 2-1-0 cannot be replayed; it failed at "Count Word", and only messages of sources are sent '
        "again\n  fix: send what came to the source again, if its other results may come twice; "
        f"else take its input with `wallaroo dead-letters show {checkpoint} 2-1-0 --input FILE`\n"
    )
    message = b"\x00\x00\x00\x09" + DECODER.input
    assert receiver.taken == [2 * message]
    assert (checkpoint / "dead-letters" / "replayed").read_text() == "2-1-1\n10-0-0\n"
    assert run(capsys, "replay", checkpoint, "2-1-1", "--to", to) == (
        0, "0 replayed, 1 were before (--again sends them once more)\n", "",
    )  # fmt: skip
    assert "(replayed)" in run(capsys, "ls", checkpoint)[1]
    code, out, err = run(capsys, "replay", checkpoint, "2-1-1", "--to", to, "--again", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) | {"time": ""} == {"time": "", "replayed": 1, "before": 0, "refused": 0}
    receiver.close()
    assert receiver.taken == [2 * message, message]


def test_replay_to_the_running_application(
    checkpoint: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    source = {"port": 0, "name": "Split and Count", "host": "127.0.0.1", "tcp_port": receiver.port}
    started = process_start_time(os.getpid())
    status = {"pid": os.getpid(), "start_time": started, "sources": [source]}
    (checkpoint / "gateway.json").write_text(json.dumps(status))
    assert run(capsys, "replay", checkpoint, "10-0-0")[0] == 0
    receiver.close()
    assert receiver.taken == [b"\x00\x00\x00\x09" + DECODER.input]
    starting = {"pid": os.getpid(), "start_time": started, "state": "starting"}
    for other in ({**status, "start_time": 1}, starting):
        (checkpoint / "gateway.json").write_text(json.dumps(other))
        code, _, err = run(capsys, "replay", checkpoint, "2-1-1")
        assert code == 1
        assert err.startswith('R618 no connection to source "Split and Count"; the application does not run\n')


def test_a_source_that_is_not_there_marks_nothing(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code, _, err = run(capsys, "replay", checkpoint, "2-1-1", "--to", f"127.0.0.1:{port}")
    assert (code, err.splitlines()[0]) == (
        1, f"R618 no connection to 127.0.0.1:{port}; Connection refused; 1 dead letters were not marked as replayed",
    )  # fmt: skip
    assert not (checkpoint / "dead-letters" / "replayed").exists()


def changed(change: Callable[[pb.DeadLetter], object]) -> pb.DeadLetter:
    letter = pb.DeadLetter.FromString(DECODER.SerializeToString())
    change(letter)
    return letter


def test_tabs_of_a_traceback_are_spaces(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(checkpoint, "11-0", changed(lambda letter: setattr(letter, "traceback", "main.count\n\tmain.go:7\x1b")))
    assert "  main.count\n      main.go:7\\x1b\n" in run(capsys, "show", checkpoint, "11-0-0")[1]


@pytest.mark.parametrize(
    ("letter", "reason"),
    [
        (
            changed(lambda letter: setattr(letter, "port", 9)),
            'source "Split and Count" is no longer in the application',
        ),
        (changed(lambda letter: setattr(letter, "input", b"")), "its input was too long to be kept"),
        (changed(lambda letter: setattr(letter, "encoding", 16)), "its input is in the worker's own form"),
    ],
)
def test_what_cannot_be_replayed(
    checkpoint: Path, letter: pb.DeadLetter, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(checkpoint, "11-0", letter)
    code, _, err = run(capsys, "replay", checkpoint, "11-0-0", "--to", "127.0.0.1:1")
    assert code == 1
    assert f"R621 dead letter 11-0-0 cannot be replayed; {reason}" in err


def test_a_message_that_a_changed_program_has_run_again_is_replayed_when_asked_for(
    checkpoint: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    to = f"127.0.0.1:{receiver.port}"
    for batches, is_refused in (([0, 1, 9, 11], False), ([3, 10], True)):
        change_manifest(checkpoint, rerun_batches=tuple(batches))
        code, _, err = run(capsys, "replay", checkpoint, "10-0-0", "--to", "127.0.0.1:1")
        assert code == 1
        assert (
            "R621 dead letter 10-0-0 cannot be replayed; a changed program has run its message" in err
        ) is is_refused
    assert "fix: if its result is missing, --again sends it all the same" in err
    assert run(capsys, "replay", checkpoint, "10-0-0", "--to", to, "--again") == (0, "1 replayed\n", "")
    receiver.close()
    assert receiver.taken == [b"\x00\x00\x00\x09" + DECODER.input]


def test_a_framing_that_only_the_decoder_knows(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads((checkpoint / "application.json").read_bytes())["topology"]
    document["pipelines"][0]["sources"][0]["framing"] = {"kind": "worker", "header_bytes": 4}
    change_manifest(checkpoint, topology=document)
    code, _, err = run(capsys, "replay", checkpoint, "10-0-0", "--to", "127.0.0.1:1")
    assert code == 1
    assert 'only the decoder of source "Split and Count" knows the bytes around a message' in err


def test_one_replay_at_a_time(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = take_lock(checkpoint / "dead-letters", TRY)
    code, _, err = run(capsys, "replay", checkpoint, "10-0-0", "--to", "127.0.0.1:1")
    os.close(lock)
    fix = "wait until it has ended, or stop it (`wallaroo stop` ends a run); if both must run at the same time, "
    fix += "give each its own checkpoint"
    text = f"R610 checkpoint {checkpoint} is in use by another replay or prune\n  fix: {fix}\n"
    assert (code, err) == (1, text)


def test_replay_needs_ids_or_all(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "replay", checkpoint)[::2] == (
        2, "R608 replay needs ids, or --all\n  fix: give one of the two\n",
    )  # fmt: skip


@pytest.mark.slow
def test_many_letters_take_little_time_and_memory(checkpoint: Path) -> None:
    big = changed(lambda letter: setattr(letter, "input", bytes(1000)))
    values = [big.SerializeToString()] * 1000
    frame = encode_frame(values, port=DEAD_LETTER_PORT)
    (checkpoint / "dead-letters" / f"{QUERY}-20-0.frames").write_bytes(frame * 30)
    script = (
        "import sys; from wallaroo_runtime.cli.main import main; code = main(sys.argv[1:]); "
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]; "
        "print(peak, sorted({'grpc', 'pyspark'} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", script, "dead-letters", "ls", str(checkpoint), "--code", "C505", "--json"]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert time.monotonic() - begin < 60
    assert len(done.stdout.splitlines()) == 30_002
    size, modules = done.stderr.split(" ", 1)
    assert int(size) < 60_000, f"{size} KiB for 30 MB of dead letters"
    assert modules == "[]\n"
