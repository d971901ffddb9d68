"""The checkpoint directory: where it lies, who may use it, which program may go on with it."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.manifest import change_manifest
from support.word_count import WORD_COUNT
from wallaroo.message.frame import encode_frame
from wallaroo_runtime.checkpoint.checkpoint import HERE, Checkpoint
from wallaroo_runtime.checkpoint.directory import default_directory
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.console.reporter import TextReporter
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.configuration import open_sources
from wallaroo_runtime.peer.remote import RemoteOptions
from wallaroo_runtime.plan.change import Impact
from wallaroo_runtime.run.history import tell_past
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import SinkPosition, write_position
from wallaroo_runtime.storage.outbox.staging import StagingWriter
from wallaroo_runtime.topology.load import load_document

STATE = 'state "word totals" of step "Count Word" (0/steps/1)'
CLASS = next(part for part in WORD_COUNT["workers"][0]["components"] if part["path"] == "0/steps/1/state")["symbol"]
RENAME = (
    "change it back, or run the program that wrote it; if only fields differ, --accept-changed continues and drops "
    "the values of these fields; "
    "--fresh starts over without the state"
)


def open_checkpoint(
    path: Path,
    change: Callable[[Any], object] = lambda _: None,
    *,
    accepts_changed: bool = False,
    remote: RemoteOptions = HERE,
    partitions: int = 3,
) -> Checkpoint:
    document = copy.deepcopy(WORD_COUNT)
    change(document)
    place = HeldDirectory.take(path)
    try:
        topology = load_document(document)
        return Checkpoint.open(
            place,
            topology,
            shuffle_partitions=partitions,
            buckets_per_partition=4,
            accepts_changed=accepts_changed,
            remote=remote,
        )
    finally:
        place.release()


def refused(path: Path, change: Callable[[Any], object]) -> str:
    before = (path / "application.json").read_bytes()
    with pytest.raises(RunError) as caught:
        open_checkpoint(path, change)
    assert (path / "application.json").read_bytes() == before
    assert caught.value.exit_code == 1
    return str(caught.value)


def test_default_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    app = tmp_path / "word_count.py"
    found = default_directory("Word Count: é!", "python", app)
    assert found.parent == tmp_path / "wallaroo"
    assert found.name.startswith("word-count-e-python-")
    assert found == default_directory("Word Count: é!", "python", app)
    assert found != default_directory("Word Count: é!", "go", app)
    assert found != default_directory("Word Count: é!", "python", tmp_path / "other" / "word_count.py")
    assert default_directory("数", "go", app).name.startswith("application-go-")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_directory("a", "go", app).is_relative_to(tmp_path / "home" / ".local" / "state" / "wallaroo")


def test_a_new_checkpoint_is_private_and_has_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    checkpoint = open_checkpoint(path)
    assert not checkpoint.continues
    assert path.stat().st_mode & 0o777 == 0o700
    assert (path / "application.json").stat().st_mode & 0o777 == 0o600
    assert {"spark", "journal", "staging", "outbox", "dead-letters", "logs"} <= {entry.name for entry in path.iterdir()}
    manifest = json.loads((path / "application.json").read_bytes())
    assert manifest["topology"] == WORD_COUNT
    assert manifest["ports"]["states"] == {"word totals": 1}


def test_going_on_keeps_partitions_and_tells_changed_code(tmp_path: Path) -> None:
    open_checkpoint(tmp_path)
    change_manifest(tmp_path, shuffle_partitions=7)
    again = open_checkpoint(tmp_path)
    assert (again.continues, again.manifest.shuffle_partitions, again.changed_code) == (True, 7, [])
    hash_ = "sha256:" + "7" * 64
    changed = open_checkpoint(tmp_path, lambda document: document["workers"][0].update(code_hash=hash_))
    assert changed.changed_code == ["main"]


def test_names_and_addresses_may_change(tmp_path: Path) -> None:
    open_checkpoint(tmp_path)

    def change(document: Any) -> None:
        document["pipelines"][0]["name"] = "other"
        document["pipelines"][0]["steps"][0]["name"] = "other"
        document["pipelines"][0]["sources"][0]["port"] = 1

    assert open_checkpoint(tmp_path, change).continues


def test_another_application(tmp_path: Path) -> None:
    open_checkpoint(tmp_path)
    assert refused(tmp_path, lambda document: document.update(name="Alphabet")) == (
        f'R603 checkpoint {tmp_path} belongs to application "Word Count Application", not to "Alphabet"\n'
        f"  fix: give another --checkpoint, or remove the existing checkpoint by hand: rm -r {tmp_path}; "
        "--fresh removes no checkpoint of another application"
    )


def test_another_language(tmp_path: Path) -> None:
    open_checkpoint(tmp_path)
    assert refused(tmp_path, lambda document: document["workers"][0].update(language="go")) == (
        f"R605 the state of checkpoint {tmp_path} was written with a python worker; the program now has a go one\n"
        "  fix: change it back, or run the program that wrote it; if only fields differ, --accept-changed continues "
        "and drops the values of these fields; --fresh starts over without the state"
    )


def test_another_state_class(tmp_path: Path) -> None:
    open_checkpoint(tmp_path)

    def change(document: Any) -> None:
        parts = document["workers"][0]["components"]
        next(part for part in parts if part["path"] == "0/steps/1/state").update(symbol="New", file="app.py", line=9)

    assert refused(tmp_path, change) == (
        f'R605 state "word totals" of checkpoint {tmp_path} was written with {CLASS}; the program now has New\n'
        f"  at app.py:9\n  fix: {RENAME}"
    )


def shaped(**shape: str) -> Callable[[Any], object]:
    def change(document: Any) -> None:
        parts = document["workers"][0]["components"]
        next(part for part in parts if part["path"] == "0/steps/1/state")["shape"] = shape

    return change


def test_a_field_that_was_kept_and_is_gone_is_refused_unless_it_is_accepted(tmp_path: Path) -> None:
    renamed = shaped(Name="string", Sum="int")
    open_checkpoint(tmp_path, shaped(Name="string", Total="int"))
    assert refused(tmp_path, renamed) == (
        f'R605 state "word totals" of checkpoint {tmp_path} was written with {CLASS} {{Total int, ...}}; '
        f"the program now has {CLASS} {{Sum int, ...}}\n  at app.py:45\n  fix: {RENAME}"
    )
    more = open_checkpoint(tmp_path, shaped(Name="string", Total="int", More="[]string"))
    assert [change.text for change in more.changes] == [f'{STATE} has the new field "More"']
    accepted = open_checkpoint(tmp_path, renamed, accepts_changed=True)
    (told,) = [change.text for change in accepted.changes]
    assert told.startswith(f"{STATE} was ")
    assert told.endswith('what was kept in field "More", field "Total" would be lost')
    open_checkpoint(tmp_path, renamed)


def test_a_new_field_that_old_states_lack_gets_a_value_in_the_class(tmp_path: Path) -> None:
    open_checkpoint(tmp_path, shaped(Name="str!"))
    text = refused(tmp_path, shaped(Name="str!", extra="list!"))
    assert f"was written with {CLASS} {{...}}; the program now has {CLASS} {{extra list, ...}}\n" in text
    fix = 'give field "extra" a value in the class\'s body, such as `extra = None` (no default_factory), change it back'
    assert f"  fix: {fix}, or run the program that wrote it" in text


def test_another_topology(tmp_path: Path) -> None:
    open_checkpoint(tmp_path)

    def change(document: Any) -> None:
        document["pipelines"][0]["steps"][1]["state"]["name"] = "totals"

    assert refused(tmp_path, change) == (
        f"R615 checkpoint {tmp_path} does not fit this run: state of step "
        '"Count Word" (0/steps/1) was "word totals" and is "totals"; what it has kept would be lost\n'
        "  fix: give a renamed state or step its former name, or run with the program, the release and the services "
        "of the checkpoint's last run, or start over without the states: --fresh"
    )


def test_a_safe_change_is_accepted_and_recorded(tmp_path: Path) -> None:
    open_checkpoint(tmp_path)

    def change(document: Any) -> None:
        pipeline = document["pipelines"][0]
        pipeline["steps"][0]["kind"] = "computation"
        pipeline["sources"][0]["max_message_bytes"] = 9

    assert [change.text for change in open_checkpoint(tmp_path, change).changes] == [
        'max_message_bytes of source "Split and Count" (0/sources/0) was 16777216 and is 9',
        'kind of step "split into words" (0/steps/0) was computation_multi and is computation',
    ]
    assert open_checkpoint(tmp_path, change).changes == []


def test_a_change_that_needs_a_drain(tmp_path: Path) -> None:
    open_checkpoint(tmp_path)
    writer = JournalWriter(tmp_path / "journal")
    writer.append(0, 2, [b"\0\0\0\1a\0\0\0\1b"], timestamp_ms=1)
    writer.close()

    def change(document: Any) -> None:
        document["pipelines"][0]["sources"][0]["framing"]["kind"] = "u16be"

    assert refused(tmp_path, change) == (
        "R790 the program was changed, and the last run, with the former program, did not complete its work: "
        "checkpoint "
        f"{tmp_path}: the journal has 2 unprocessed messages; "
        'framing of source "Split and Count" (0/sources/0) was u32be and is u16be; the journal holds messages as they '
        "came\n"
        "  fix: run the former program once more, e.g. with --stop-when-idle 10, then this one; if a message "
        "ends that run, add --on-error dead_letter"
    )
    end = JournalReader(tmp_path / "journal").end()
    offset = {"journal": f"{end.journal_id:016x}", "offset": end.offset, "sequence": end.messages}
    plan = "v1\n{}\n" + json.dumps(offset)
    (tmp_path / "spark" / "metadata").write_text('{"id":"q"}')
    for folder, text in (("commits", "v1\n{}"), ("offsets", plan)):
        (tmp_path / "spark" / folder).mkdir()
        (tmp_path / "spark" / folder / "0").write_text(text)
    Outbox(tmp_path / "outbox", tmp_path / "dead-letters").publish("q", 0, [], plan)
    assert open_checkpoint(tmp_path, change).changes[0].impact is Impact.NEEDS_DRAIN


def test_output_for_a_sink_that_is_gone(tmp_path: Path) -> None:
    def two_sinks(document: Any) -> None:
        pipeline = document["pipelines"][0]
        pipeline["sinks"].append({**pipeline["sinks"][0], "path": "0/sinks/1", "name": "second"})

    port = open_checkpoint(tmp_path, two_sinks).manifest.ports.parts["0/sinks/1"]
    staging = StagingWriter(tmp_path / "staging", "q", 0, 0, 0)
    staging.write(port, encode_frame([b"a", b"b", b"c"], port=port))
    outbox = Outbox(tmp_path / "outbox", tmp_path / "dead-letters")
    outbox.publish("q", 0, staging.finish())
    assert refused(tmp_path, lambda _: None).startswith(
        "R790 the program was changed, and the last run, with the former program, did not complete its work: "
        "checkpoint "
        f'{tmp_path}: its outbox has 3 undelivered messages; sink "second" (0/sinks/1) is gone; output '
        "that waits for it would never be delivered\n"
    )
    write_position(tmp_path / "outbox", port, SinkPosition(record=1, messages=3, total_bytes=3), durable=True)
    assert open_checkpoint(tmp_path).manifest.ports.parts == {"0/sources/0": 0, "0/steps/1": 1, "0/sinks/0": 2}
    again = open_checkpoint(tmp_path, two_sinks)
    assert again.manifest.ports.parts["0/sinks/1"] == 4, "a number is never given to a second part"


def test_services_that_run_elsewhere_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    remote = RemoteOptions({"": "127.0.0.1:1"}, "127.0.0.1:2")
    first = open_checkpoint(path, remote=remote)
    first.record("gateway", "0123456789abcdef")
    again = open_checkpoint(path, remote=remote)
    assert again.manifest.id == first.manifest.id
    assert again.manifest.services == {"gateway": "0123456789abcdef", "egress": ""}
    with pytest.raises(RunError) as caught:
        open_checkpoint(path)
    assert str(caught.value).startswith(
        f"R615 checkpoint {path} does not fit this run: it was begun with remote egress and remote gateway; this run "
        "has "
        "local gateway and egress"
    )


def test_sources_beyond_loopback_are_told() -> None:
    document = copy.deepcopy(WORD_COUNT)
    assert not list(open_sources(load_document(document)))
    document["pipelines"][0]["sources"][0]["host"] = "0.0.0.0"
    (finding,) = open_sources(load_document(document))
    assert str(finding).startswith("R713 source ")
    assert "where other machines may reach it" in str(finding)


def test_a_manifest_of_another_format_or_damaged(tmp_path: Path) -> None:
    open_checkpoint(tmp_path)
    manifest = tmp_path / "application.json"
    for version in (2, 9):
        manifest.write_text(f'{{"format_version": {version}}}')
        said = refused(tmp_path, lambda _: None)
        assert f"format version {version} is not known; this runtime reads version 3" in said
    manifest.write_text("{")
    told = refused(tmp_path, lambda _: None)
    assert told.startswith(f"R698 {manifest} is damaged; ")
    assert "\n  fix: restore all of the checkpoint from one backup" in told


def test_a_second_driver_is_refused(tmp_path: Path) -> None:
    holder = HeldDirectory.take(tmp_path)
    with pytest.raises(RunError) as caught:
        HeldDirectory.take(tmp_path)
    assert str(caught.value) == (
        f"R610 checkpoint {tmp_path} is in use by another run (process {os.getpid()})\n  fix: wait until it has "
        "ended, or stop it (`wallaroo stop` ends a run); if both must run at the same time, give each its own "
        "--checkpoint"
    )
    holder.release()
    HeldDirectory.take(tmp_path).release()


@pytest.mark.slow
def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    imports = "import sys; from pathlib import Path; from wallaroo_runtime.checkpoint.lock import HeldDirectory"
    code = f"{imports}; HeldDirectory.take(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    HeldDirectory.take(tmp_path).release()


def test_a_directory_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(RunError) as caught:
        HeldDirectory.take(tmp_path)
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"R715 {tmp_path} cannot be used as a checkpoint; it holds other files\n  fix: give another --checkpoint"
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(RunError, match="cannot be used as a checkpoint; File exists"):
        HeldDirectory.take(path)


def test_clear_removes_everything_and_follows_no_link(tmp_path: Path) -> None:
    outside, path = tmp_path / "outside", tmp_path / "checkpoint"
    outside.mkdir()
    (outside / "kept").write_text("")
    open_checkpoint(path)
    (path / "link").symlink_to(outside)
    (path / "journal" / "link").symlink_to(outside)
    place = HeldDirectory.take(path)
    place.clear()
    place.release()
    assert [entry.name for entry in path.iterdir()] == ["driver.lock"]
    assert (outside / "kept").exists()
    assert not open_checkpoint(path).continues


def test_number_of_partitions_stays_and_is_told_where_another_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "checkpoint"
    open_checkpoint(path)
    tell_past(TextReporter(), open_checkpoint(path), 5)
    assert capsys.readouterr().err == f"continuing from {path}\nearlier runs took 5 messages; --fresh starts over\n"
    tell_past(TextReporter(), open_checkpoint(path), 1)
    assert "earlier runs took 1 message;" in capsys.readouterr().err
    tell_past(TextReporter(), open_checkpoint(path), None)
    said = f"continuing from {path}\nits sources continue at their positions; --fresh starts over\n"
    assert capsys.readouterr().err == said
    again = open_checkpoint(path, partitions=8)
    assert again.manifest.shuffle_partitions == 3
    for asked in (0, 3):  # more cores than the checkpoint began with are no reason to say so at each start
        tell_past(TextReporter(), again, 5, asked)
        assert capsys.readouterr().err == f"continuing from {path}\nearlier runs took 5 messages; --fresh starts over\n"
    tell_past(TextReporter(), again, 5, 8)
    assert capsys.readouterr().err.endswith(
        "the checkpoint keeps its 3 shuffle partitions, not 8; "
        f"`wallaroo state rescale {path} --partitions 8` changes it\n"
    )
