"""Programs that were changed after a kill between the publishing of a micro-batch and Spark's commit of it."""

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.manifest import change_manifest
from support.small_checkpoint import WORD_COUNT, Small, open_checkpoint
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.integrity import SparkFiles
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.peer.remote import RemoteOptions
from wallaroo_runtime.run.history import tell_past
from wallaroo_runtime.storage.outbox.log import Published, read_base
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.topology.load import load_document

Change = Callable[[Any], object]
KILLED = (
    "the last run, with another program, ended after results of micro-batch 1 were delivered and before Spark "
    "committed this micro-batch"
)


def worker(field: str, value: Any) -> Change:
    return lambda made: made["workers"][0].__setitem__(field, value)


CODE = worker("code_hash", "sha256:" + "7" * 64)
SAME: list[Change] = [
    lambda _: None,
    worker("args", ["--in", "127.0.0.1:7010", "--out=127.0.0.1:7999"]),
    worker("directory", "/elsewhere"),
    worker("command", ["{python}", "-m", "wallaroo.worker", "/tmp/b001/app.py"]),
    lambda made: made["pipelines"][0]["sinks"][0].__setitem__("port", 7999),
]
OTHER: list[Change] = [
    CODE,
    worker("args", ["--strict", "1"]),
    worker("command", ["{python}", "-m", "wallaroo.worker", "other.py"]),
    worker("call_deadline_ms", 77_000),
    lambda made: made["pipelines"][0]["steps"][0].__setitem__("on_error", "fail"),
]


def document(change: Change) -> Any:
    made = copy.deepcopy(WORD_COUNT)
    change(made)
    return made


def opened(path: Path, change: Change, remote: RemoteOptions | None = None) -> Checkpoint:
    place = HeldDirectory.take(path)
    try:
        return Checkpoint.open(
            place,
            load_document(document(change)),
            shuffle_partitions=3,
            buckets_per_partition=4,
            remote=remote or RemoteOptions(),
        )
    finally:
        place.release()


def run_until(path: Path, last: str) -> None:
    """Make a whole micro-batch, and of another one what comes up to a step."""
    small = Small(path)
    for steps in (("plan", "publish", "commit"), ("plan", "publish", "commit")[: 1 + ("plan", "publish").index(last)]):
        small.receive([b"a"])
        for step in steps:
            assert small.plan(1 << 20) if step == "plan" else getattr(small, step)() is None
    small.close()


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Give a checkpoint whose micro-batch 1 is published and not committed."""
    run_until(tmp_path / "c", "publish")
    return tmp_path / "c"


class Told:
    """Keeps what a run says of the runs before it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, finding: object) -> None:
        self.warnings.append(str(finding))


def told(checkpoint: Checkpoint) -> Told:
    found = Told()
    tell_past(found, checkpoint, 2)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("change", OTHER)
def test_another_program_says_which_batch_it_runs_again(change: Change, killed: Path) -> None:
    (said,) = told(opened(killed, change)).warnings
    assert said.startswith(f"R754 {KILLED}: these results stay; this program processes the messages of")
    assert "which changes its states but sends no results" in said
    assert "do not replay dead letters whose ids begin with 1-, because their" in said
    assert read_manifest(killed).rerun_batches == (1,)
    again = opened(killed, change)
    assert (again.manifest.rerun_batches, len(told(again).warnings)) == ((1,), 1), "as long as it is not committed"
    rest = Small(killed)
    rest.finish()
    rest.close()
    assert told(opened(killed, change)).warnings == []
    assert read_manifest(killed).rerun_batches == (1,), "its letters stay"


@pytest.mark.parametrize("change", SAME)
def test_the_same_program_says_nothing(change: Change, killed: Path) -> None:
    assert told(opened(killed, change)).warnings == []
    assert not read_manifest(killed).rerun_batches


def test_a_changed_start_of_a_worker_is_noted(killed: Path) -> None:
    assert 'changed since the last run: args of worker "main" changed' in told(opened(killed, OTHER[1])).notes


@pytest.mark.parametrize("seed", range(20))
def test_only_what_is_published_and_not_committed_runs_again(tmp_path: Path, seed: int) -> None:
    draw, path = random.Random(seed), tmp_path / "c"
    small = Small(path)
    steps = ("receive", "plan", "publish", "commit")
    last = draw.randint(0, 4)
    for number in range(rounds := draw.randint(1, 4)):
        small.receive([b"a"])
        for step in steps[1 : last if number == rounds - 1 else 4]:
            small.plan(1 << 20) if step == "plan" else getattr(small, step)()
    small.close()
    if draw.random() < 0.3 and last == 4:  # a loss of power: the batch is processed once more
        (path / "spark" / "commits" / str(rounds - 1)).write_bytes(b"")
        last = 3
    assert opened(path, CODE).manifest.rerun_batches == ((rounds - 1,) if last == 3 else ())


def test_what_only_sinks_of_spark_have_got_is_told(tmp_path: Path) -> None:
    path = tmp_path / "c"
    run_until(path, "plan")
    RecordCount.open(LocalDirectory(path)).write("query-1", 1)
    checkpoint = opened(path, CODE)
    (said,) = told(checkpoint).warnings
    assert "committed this micro-batch: sinks that Spark writes keep these results; this program processes" in said
    assert checkpoint.manifest.rerun_batches == (), "its letters are those of the new one"


def elsewhere(path: Path) -> RemoteOptions:
    """Let the checkpoint be one with a remote egress."""
    change_manifest(path, services={"egress": "0123456789abcdef"})
    return RemoteOptions(egress="127.0.0.1:1")


@pytest.mark.parametrize("last", ["plan", "publish"])
def test_an_egress_elsewhere_says_later_what_is_published(last: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    run_until(path, last)
    remote = elsewhere(path)
    assert opened(path, CODE, remote).manifest.rerun_batches == (1,), "the egress may not answer in this run"
    checkpoint = opened(path, CODE, remote)
    checkpoint.check_published(Published.of(read_base(path / "outbox")))
    known = (1,) if last == "publish" else ()
    assert checkpoint.manifest.rerun_batches == read_manifest(path).rerun_batches == known
    assert len(told(checkpoint).warnings) == len(known)


def test_what_repeats_is_found_without_repairs(killed: Path) -> None:
    checkpoint = open_checkpoint(killed)
    files = SparkFiles(checkpoint.directory, "spark", Published.of(read_base(killed / "outbox")))
    assert (files.repeated(), files.pending(), files.repairs) == (1, 1, [])
