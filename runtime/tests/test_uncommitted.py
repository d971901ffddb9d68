"""Programs that were changed after a kill in real-time mode are refused, by `diff`, too, unless that is accepted."""

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.delivered import delivered
from support.manifest import change_manifest
from support.word_count import WORD_COUNT
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import REALTIME, read_manifest
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run.history import tell_past
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.outbox.position import begin_position
from wallaroo_runtime.system.process import process_start_time
from wallaroo_runtime.topology.load import load_document

Change = Callable[[Any], object]
SAYS = (
    "R790 the program was changed, and the last run, with the former program, did not complete its work: it sent "
    "the results of the messages at positions 0 to 2, but ended before Spark had committed these messages\n"
)


def document(change: Change) -> Any:
    made = copy.deepcopy(WORD_COUNT)
    change(made)
    return made


def opened(path: Path, change: Change = lambda _: None, *, accepts: bool = False) -> Checkpoint:
    place = HeldDirectory.take(path)
    try:
        topology = load_document(document(change))
        return Checkpoint.open(
            place, topology, shuffle_partitions=1, buckets_per_partition=4, mode=REALTIME, accepts_changed=accepts
        )
    finally:
        place.release()


def code(made: Any) -> None:
    made["workers"][0]["code_hash"] = "sha256:" + "7" * 64


def sink_moved(made: Any) -> None:
    """Let the sink read the step before the state."""
    made["pipelines"][0]["sinks"][0]["inputs"] = ["0/steps/0"]


def args(made: Any) -> None:
    made["workers"][0]["args"] = ["--strict", "1"]


def command(made: Any) -> None:
    made["workers"][0]["command"] = ["{python}", "-m", "wallaroo.worker", "other.py"]


def address(made: Any) -> None:
    """Let the program get other addresses; it is the same one."""
    made["workers"][0]["args"] = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7999"]
    made["pipelines"][0]["sinks"][0]["port"] = 7999


def visitor(made: Any) -> None:
    made["pipelines"][0]["steps"][1]["visits"] = ["reset"]


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Give a checkpoint of whose five messages three have left, and none is committed."""
    path = tmp_path / "checkpoint"
    port = opened(path).manifest.ports.parts["0/sinks/0"]
    writer = JournalWriter(path / "journal")
    for _ in range(5):
        writer.append(0, 1, [b"\0\0\0\1a"], timestamp_ms=1)
    writer.close()
    delivered(path, 2, port)
    begin_position(path / "outbox", port)
    return path


def commit(path: Path) -> None:
    """Let Spark's checkpoint say that all of the journal is processed."""
    end = JournalReader(path / "journal").end()
    offset = {"journal": f"{end.journal_id:016x}", "offset": end.offset, "sequence": end.messages}
    (path / "spark" / "metadata").write_text('{"id":"q"}')
    for folder, text in (("commits", "v1\n{}"), ("offsets", "v1\n{}\n" + json.dumps(offset))):
        (path / "spark" / folder).mkdir()
        (path / "spark" / folder / "0").write_text(text)


def diff(path: Path, change: Change, *options: str) -> int:
    new = path.parent / "new.json"
    new.write_text(json.dumps(document(change)))
    return main(["diff", str(path), str(new), *options])


@pytest.mark.parametrize("change", [code, args, command, visitor, sink_moved])
def test_a_changed_program_is_refused_unless_that_is_accepted(
    change: Change, killed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = read_manifest(killed)
    for _ in range(2):  # it stays refused
        with pytest.raises(RunError) as caught:
            opened(killed, change)
        assert str(caught.value).startswith(SAYS)
        assert read_manifest(killed) == before
    fix = caught.value.diagnostics[0].fix
    assert all(each in fix for each in ("--stop-when-idle", "--on-error dead_letter", "--accept-changed", "twice"))
    assert diff(killed, change) == 1
    assert capsys.readouterr().err.strip() == str(caught.value)
    assert diff(killed, change, "--json") == 1
    assert json.loads(capsys.readouterr().err)[0]["code"] == "R790"
    assert opened(killed).accepted == range(0), "the program is that of the last run"
    assert opened(killed, change, accepts=True).accepted == range(3)
    assert opened(killed, change).accepted == range(0), "it is that of the last run now"


def test_other_addresses_alone_are_no_other_program(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(killed, address) == 0
    assert capsys.readouterr().err == ""
    assert opened(killed, address).accepted == range(0)


@pytest.mark.parametrize("change", [code, sink_moved])
def test_a_changed_program_goes_on_when_all_is_committed(
    change: Change, killed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(killed)
    assert diff(killed, change) == 0
    assert capsys.readouterr().err == ""
    assert opened(killed, change).accepted == range(0)


def test_what_is_accepted_is_told(killed: Path) -> None:
    notes: list[str] = []
    reporter = SimpleNamespace(note=notes.append, warn=notes.append)
    tell_past(reporter, opened(killed, code, accepts=True), 5)  # type: ignore[arg-type]
    assert "--accept-changed: messages at positions 0 to 2 run again, R790" in notes


def test_diff_says_what_it_cannot_know(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pid = os.getpid()
    (killed / "driver.json").write_text(json.dumps({"pid": pid, "start_time": process_start_time(pid)}))
    assert diff(killed, sink_moved) == 0
    assert capsys.readouterr().err.startswith("note: it is in use: stop it with Ctrl-C or SIGTERM; after a kill")
    (killed / "driver.json").unlink()
    change_manifest(killed, services={"egress": "0123456789abcdef"})
    assert diff(killed, sink_moved) == 0
    assert capsys.readouterr().err.startswith("note: its gateway or egress is remote: after a kill")


@pytest.mark.parametrize("content", [b"", b"v1\n{}\n{", b"\xff", None])
@pytest.mark.parametrize("name", ["spark/offsets/0", "journal/head"])
def test_diff_names_the_file_of_a_damaged_checkpoint(
    name: str, content: bytes | None, killed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(killed)
    (killed / name).unlink()
    if content is None:
        (killed / name).mkdir()
    else:
        (killed / name).write_bytes(content)
    assert diff(killed, code) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("R698 ") and "restore all of the checkpoint from one backup" in errors
    assert str(killed) in errors and "Traceback" not in errors
