"""What refuses another mode before Spark is started, and what a checkpoint says afterwards."""

import copy
import json
import random
import shlex
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.delivered import delivered
from support.manifest import change_manifest
from support.small_checkpoint import WORD_COUNT, Small
from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.checkpoint.uncommitted import between, delivered_of, next_of
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.maintenance.rescalable import batch_after, check_microbatch, check_realtime, end_of
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.log import read_base
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.topology.load import load_document

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"


def opened(path: Path, mode: str = "microbatch", document: dict[str, Any] | None = None) -> Checkpoint:
    place = HeldDirectory.take(path)
    try:
        topology = load_document(copy.deepcopy(document or WORD_COUNT))
        return Checkpoint.open(place, topology, shuffle_partitions=3, buckets_per_partition=5, mode=mode)
    finally:
        place.release()


def with_state(path: Path, operators: int) -> None:
    """Let Spark's checkpoint have the stores of so many operators."""
    for operator in range(operators):
        (path / "spark" / "state" / str(operator)).mkdir(parents=True)


def processed(path: Path, messages: int = 3) -> Small:
    """Return a checkpoint whose last micro-batch is committed."""
    small = Small(path)
    small.receive([b"text"] * messages)
    small.finish()
    return small


def rescale(path: Path, mode: str, *options: str) -> int:
    return main(["state", "rescale", str(path), "--mode", mode, *options])


def numbers(path: Path) -> tuple[str, int, int]:
    found = read_manifest(path)
    return found.mode, *found.numbers


@pytest.mark.slow
def test_a_checkpoint_without_micro_batches_gets_the_mode_alone_and_its_numbers_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(tmp_path)
    assert rescale(tmp_path, "realtime") == 0
    assert numbers(tmp_path) == ("realtime", 1, 4)
    told = "run it with --mode realtime now; 1 shuffle partition of 4 buckets, were 3 of 5; no state to move, in "
    assert capsys.readouterr().out.startswith(told)
    assert rescale(tmp_path, "realtime") == 0
    assert capsys.readouterr().out == "1 shuffle partition of 4 buckets, as before; nothing to do\n"
    opened(tmp_path, "realtime")  # a run keeps what the checkpoint says
    assert rescale(tmp_path, "microbatch") == 0
    assert numbers(tmp_path) == ("microbatch", 3, 5)
    told = "run it with --mode microbatch now; 3 shuffle partitions of 5 buckets, were 1 of 4; no state to move, in "
    assert capsys.readouterr().out.startswith(told)
    opened(tmp_path)


@pytest.mark.slow
def test_micro_batches_get_the_numbers_that_are_given(tmp_path: Path) -> None:
    opened(tmp_path, "realtime")
    assert rescale(tmp_path, "microbatch", "--partitions", "7", "--buckets", "2") == 0
    assert numbers(tmp_path) == ("microbatch", 7, 2)


@pytest.mark.slow
def test_real_time_mode_gets_the_buckets_that_are_given_and_others_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(tmp_path)
    assert rescale(tmp_path, "realtime", "--buckets", "3") == 0
    assert numbers(tmp_path) == ("realtime", 1, 3)
    capsys.readouterr()
    assert rescale(tmp_path, "realtime", "--buckets", "16") == 0
    said = capsys.readouterr().out
    assert said.startswith("1 shuffle partition of 16 buckets, were 1 of 3; no state to move, in ")
    assert main(["state", "rescale", str(tmp_path), "--buckets", "16"]) == 0
    assert capsys.readouterr().out == "1 shuffle partition of 16 buckets, as before; nothing to do\n"
    checkpoint = opened(tmp_path, "realtime")
    assert checkpoint.manifest.numbers == (1, 16)
    assert rescale(tmp_path, "microbatch") == 0
    assert numbers(tmp_path) == ("microbatch", 3, 5)


def test_the_other_mode_is_refused_with_the_command(tmp_path: Path) -> None:
    opened(tmp_path)
    with pytest.raises(RunError) as caught:
        opened(tmp_path, "realtime")
    command = f"`wallaroo state rescale {tmp_path} --mode realtime`"
    assert command in caught.value.diagnostics[0].fix


def test_a_micro_batch_that_is_planned_alone_is_left_and_a_published_one_is_not(tmp_path: Path) -> None:
    small = processed(tmp_path)
    small.receive([b"text"] * 5)
    small.plan(1 << 20)
    letters = [tmp_path / "dead-letters" / f"{uuid.uuid4()}-{batch}-0.frames" for batch in (0, 1)]
    for path in letters:
        path.write_bytes(b"")
    with_state(tmp_path, 1)
    end = end_of(tmp_path, read_manifest(tmp_path))
    assert (end.batch, end.sequence) == (0, 3)
    assert check_microbatch(tmp_path, end) == 0
    assert [path.exists() for path in letters] == [True, False]
    records = RecordCount.open(LocalDirectory(tmp_path))
    records.write(end.query, 1)
    with pytest.raises(RunError, match="R663 .* micro-batch 1 is published and not committed"):
        check_microbatch(tmp_path, end)  # Spark's own sinks have got it
    records.write("another query", 1)
    assert check_microbatch(tmp_path, end) == 0
    small.publish()
    small.close()
    with pytest.raises(RunError, match="R663 .* micro-batch 1 is published and not committed"):
        check_microbatch(tmp_path, end)


@pytest.mark.slow
def test_numbers_of_dead_letters_are_never_used_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    processed(tmp_path).close()
    with_state(tmp_path, 1)
    (tmp_path / "dead-letters" / f"{uuid.uuid4()}-4000-0.frames").write_bytes(b"")
    assert rescale(tmp_path, "realtime") == 2
    said = capsys.readouterr().err
    assert "its dead letters have numbers of micro-batches that real-time mode would use" in said
    for command in said.split("`")[1].split(" && "):
        assert main(shlex.split(command)[1:]) == 0
    assert list((tmp_path.with_name(f"{tmp_path.name}.letters") / "files" / "dead-letters").glob("*-4000-0.frames"))


@given(st.lists(st.lists(st.tuples(st.booleans(), st.integers(3, 12)), max_size=8), min_size=1, max_size=6))
def test_no_file_of_dead_letters_has_a_name_of_the_other_mode(stretches: list[list[tuple[bool, int]]]) -> None:
    """Stretches alternate between the modes; a step is a micro-batch of some messages, maybe with a start before it."""
    numbers_of: dict[bool, set[int]] = {False: set(), True: set()}
    batch, offset, is_realtime = -1, 0, False
    for stretch in stretches:
        for index, (is_start, size) in enumerate(stretch):
            batch += 1
            assert batch not in numbers_of[False]
            if is_realtime and (is_start or not index):
                numbers_of[True].add(offset)
            elif not is_realtime:
                numbers_of[False].add(batch)
            offset += size  # a frame of the journal has 40 bytes and more
        is_realtime = not is_realtime
        if batch >= 0:
            batch = batch_after(batch, offset, is_realtime=is_realtime)
    assert not numbers_of[False] & numbers_of[True]


@pytest.mark.slow
@pytest.mark.parametrize("port", [1, DEAD_LETTER_PORT])
def test_results_that_are_ahead_of_the_commit_are_refused(port: int, tmp_path: Path) -> None:
    small = processed(tmp_path)  # sequences 0 to 2
    small.receive([b"text"])
    small.close()
    manifest = replace(read_manifest(tmp_path), mode="realtime")
    delivered(tmp_path, 2, port)
    end = end_of(tmp_path, manifest)
    assert check_realtime(tmp_path, end) == end.batch
    delivered(tmp_path, 3, port)
    with pytest.raises(RunError, match="R663 .* Spark has not committed the input of delivered results") as caught:
        check_realtime(tmp_path, end)
    assert "--mode realtime --stop-when-idle 5" in caught.value.diagnostics[0].fix


@pytest.mark.slow
@pytest.mark.parametrize("port", [1, DEAD_LETTER_PORT])
def test_what_has_left_is_compared_with_the_first_frame_after_an_offset(port: int, tmp_path: Path) -> None:
    offsets, source = [0], random.Random(port)
    small = processed(tmp_path)  # sequences 0 to 2
    sequences = [0, 3]
    offsets.append(JournalReader(tmp_path / "journal").end().offset)
    for _ in range(5):
        count = source.randint(1, 4)
        small.receive([b"text"] * count)
        sequences.append(sequences[-1] + count)
        offsets.append(JournalReader(tmp_path / "journal").end().offset)
    small.close()

    def repeated(offset: int) -> range:
        return between(next_of(tmp_path / "journal", offset), delivered_of(tmp_path / "outbox"))

    assert not any(map(repeated, offsets))
    for last in sorted(source.sample(range(sequences[-1]), 5)):
        delivered(tmp_path, last, port)
        found = [bool(repeated(offset)) for offset in offsets]
        assert found == [sequence <= last for sequence in sequences[:-1]] + [False], last


@pytest.mark.slow
def test_buckets_of_real_time_mode_stay_while_results_are_ahead_of_the_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = processed(tmp_path)
    small.receive([b"text"])
    small.close()
    record = tmp_path / "application.json"
    change_manifest(tmp_path, mode="realtime")
    delivered(tmp_path, 3, 1)
    before = record.read_bytes()
    assert main(["state", "rescale", str(tmp_path), "--buckets", "5"]) == 2
    reason = "Spark has not committed the input of delivered results"
    said = capsys.readouterr().err
    assert f"R663 checkpoint {tmp_path} cannot be rescaled; {reason}\n" in said
    assert "fix: run it once more with --mode realtime --stop-when-idle 5, then repeat this command" in said
    assert record.read_bytes() == before


def test_the_last_batch_gets_the_record_that_a_killed_driver_has_not_made(tmp_path: Path) -> None:
    small = processed(tmp_path)
    small.receive([b"text"])
    small.plan(1 << 20)
    small.commit()
    small.close()
    known = read_base(tmp_path / "outbox").batches
    end = end_of(tmp_path, replace(read_manifest(tmp_path), mode="realtime"))
    assert check_realtime(tmp_path, end) == known["query-1"] + 1
    base = read_base(tmp_path / "outbox")
    assert (base.batches, base.offsets) == ({"query-1": end.batch}, end.plan)


@pytest.mark.parametrize("mode", ["realtime", "microbatch"])
def test_a_checkpoint_with_remote_parts_is_refused(
    mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(tmp_path)
    change_manifest(tmp_path, services={"egress": "0a"}, mode="realtime" if mode == "microbatch" else "microbatch")
    assert rescale(tmp_path, mode) == 2
    said = capsys.readouterr().err
    reason = "real-time mode can be rescaled only on one machine, but its journal or its outbox is at a remote service"
    assert f"R663 checkpoint {tmp_path} cannot be rescaled; {reason}\n" in said
    assert "a new --checkpoint, with its own gateway and egress, can begin in another mode" in said


@pytest.mark.slow
def test_an_application_that_cannot_run_in_the_mode_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((VALID / "shared_state.json").read_bytes())
    document["workers"].append({**document["workers"][0], "name": "other"})
    (second,) = document["pipelines"][1]["sources"]
    second |= {"worker": "other", "codec": "string"}
    opened(tmp_path, document=document)
    assert rescale(tmp_path, "realtime") == 2
    assert "R755 real-time mode cannot run this: sources of 2 workers, main, other" in capsys.readouterr().err
    assert numbers(tmp_path)[0] == "microbatch"


@pytest.mark.parametrize("mode", ["realtime", "microbatch"])
def test_real_time_mode_has_one_partition(mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened(tmp_path, mode)
    options = ["--mode", "realtime"] if mode == "microbatch" else []
    assert main(["state", "rescale", str(tmp_path), "--partitions", "2", *options]) == 2
    assert capsys.readouterr().err == (
        f"R663 checkpoint {tmp_path} cannot be rescaled; real-time mode has one partition\n"
        "  fix: give --buckets alone, or --mode microbatch\n"
    )
