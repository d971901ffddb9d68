"""Programs that were changed after a kill in real-time mode are refused, unless that is accepted."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.delivered import delivered
from support.word_count import WORD_COUNT
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import REALTIME, read_manifest
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run.history import tell_past
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.outbox.position import begin_position
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


@pytest.mark.parametrize("change", [code, args, command, visitor, sink_moved])
def test_a_changed_program_is_refused_unless_that_is_accepted(change: Change, killed: Path) -> None:
    before = read_manifest(killed)
    for _ in range(2):  # it stays refused
        with pytest.raises(RunError) as caught:
            opened(killed, change)
        assert str(caught.value).startswith(SAYS)
        assert read_manifest(killed) == before
    fix = caught.value.diagnostics[0].fix
    assert all(each in fix for each in ("--stop-when-idle", "--on-error dead_letter", "--accept-changed", "twice"))
    assert opened(killed).accepted == range(0), "the program is that of the last run"
    assert opened(killed, change, accepts=True).accepted == range(3)
    assert opened(killed, change).accepted == range(0), "it is that of the last run now"


def test_other_addresses_alone_are_no_other_program(killed: Path) -> None:
    assert opened(killed, address).accepted == range(0)


@pytest.mark.parametrize("change", [code, sink_moved])
def test_a_changed_program_goes_on_when_all_is_committed(change: Change, killed: Path) -> None:
    commit(killed)
    assert opened(killed, change).accepted == range(0)


def test_what_is_accepted_is_told(killed: Path) -> None:
    notes: list[str] = []
    reporter = SimpleNamespace(note=notes.append, warn=notes.append)
    tell_past(reporter, opened(killed, code, accepts=True), 5)  # type: ignore[arg-type]
    assert "--accept-changed: messages at positions 0 to 2 run again, R790" in notes
