"""Damage to a checkpoint is reported at the start, and what a crash leaves is none."""

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from support.history import STEPS, History, resumed
from support.manifest import change_manifest
from support.small_checkpoint import Small, copied, files_of, open_checkpoint
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.outbox.log import Published, read_base


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> tuple[History, Path, Path]:
    """Give a checkpoint between two micro-batches, an earlier copy of it, and another one of the same application."""
    root = tmp_path_factory.mktemp("checkpoints")
    main, other = History(root / "main", random.Random(1)), History(root / "other", random.Random(2), "n")
    main.go_on(4)
    old = copied(main.path, root / "old")
    main.go_on(3, 4)
    other.go_on(5, 3)
    return main, old, other.path


@pytest.mark.parametrize("seed", range(40))
def test_a_crash_between_any_two_writes_is_no_damage(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    history = History(tmp_path, draw)
    for _ in range(draw.randint(1, 4)):
        history.go_on(draw.randint(0, 3), draw.randint(0, len(STEPS)))
    rest, repairs = resumed(tmp_path)
    assert repairs == []
    assert history.got + rest == history.sent


@pytest.mark.parametrize("seed", range(20))
def test_spark_finds_empty_folders_if_it_died_in_its_first_micro_batch(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    history, spark = History(tmp_path, draw), tmp_path / "spark"
    history.go_on(0, draw.randint(0, len(STEPS)))
    for name in draw.sample(("offsets/.0.a.tmp", "offsets/..0.a.tmp.crc", "commits/.0.b.tmp", "commits/.0.crc"), 2):
        (spark / name).parent.mkdir(parents=True, exist_ok=True)
        (spark / name).touch()
    (spark / "state" / "0").mkdir(parents=True)
    small = Small(tmp_path)
    planned, committed = ({path.name for path in (spark / log).glob("*")} for log in ("offsets", "commits"))
    if "0" not in committed:
        assert not committed and planned <= {"0", ".0.crc"}
    assert (spark / "state").exists() == ("0" in planned)
    assert history.got + small.finish() == history.sent
    small.close()


def empty(path: Path) -> None:
    """Leave a file as a loss of power may leave what was not synced."""
    path.write_bytes(b"")


@pytest.mark.parametrize("seed", range(40))
def test_a_loss_of_power_is_repaired_or_told(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    history = History(tmp_path, draw)
    history.go_on(draw.randint(0, 4), draw.randint(2, len(STEPS)))
    newest = sorted(
        (tmp_path / "spark").rglob("[0-9]*"), key=lambda file: (int(file.name), file.parent.name == "commits")
    )
    lost = newest[-draw.randint(1, 2) :]
    for file in lost:
        draw.choice((empty, Path.unlink))(file)
    try:
        rest, _ = resumed(tmp_path)
    except RunError as error:
        # The micro-batch that lost its commit was done with, and its messages are gone from the journal.
        assert error.diagnostics[0].code == "R698", error
        assert len(lost) == 2, "the newest file alone can always be repaired"
    else:
        assert history.got + rest == history.sent


def remove(path: Path, draw: random.Random, old: Path, other: Path) -> None:
    path.unlink()


def truncate(path: Path, draw: random.Random, old: Path, other: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(max(1, len(content)))])


def flip(path: Path, draw: random.Random, old: Path, other: Path) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def replace_by_older(path: Path, draw: random.Random, old: Path, other: Path) -> None:
    if old.exists():
        shutil.copyfile(old, path)
    else:
        path.unlink()


def replace_by_other(path: Path, draw: random.Random, old: Path, other: Path) -> None:
    if other.exists():
        shutil.copyfile(other, path)
    else:
        path.unlink()


WAYS = (remove, truncate, flip, replace_by_older, replace_by_other)


@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_file_never_makes_wrong_output(
    checkpoints: tuple[History, Path, Path], tmp_path: Path, way: Callable[..., None]
) -> None:
    main, old, other = checkpoints
    told = 0
    for name in files_of(main.path):
        for seed in range(4 if way in (truncate, flip) else 1):
            path = copied(main.path, tmp_path / "damaged")
            way(path / name, random.Random(seed), old / name, other / name)
            told += is_told(main, path, name)
    assert told >= 4, "most damage must be told"


def is_told(history: History, path: Path, name: str) -> bool:
    """Start after damage to a file: return whether it is refused; else the output must be right."""
    try:
        rest, repairs = resumed(path)
    except RunError as error:
        assert error.diagnostics[0].code == "R698", error
        return True
    assert history.got + rest == history.sent, (name, repairs)
    return False


def refused(path: Path) -> str:
    with pytest.raises(RunError) as caught:
        resumed(path)
    return str(caught.value)


def test_an_outbox_log_that_is_gone_or_cut(checkpoints: tuple[History, Path, Path], tmp_path: Path) -> None:
    path = copied(checkpoints[0].path, tmp_path / "damaged")
    log = path / "outbox" / "log"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:3]))
    told = refused(path)
    last = len(lines) - 1
    expected = (
        f"outbox/log: expected micro-batch {last}, which Spark has committed; found micro-batch 2 as the last one"
    )
    assert told == (
        f"R698 checkpoint {path} is damaged; {expected}\n  fix: restore all of the checkpoint from one backup "
        "(application.json, spark, journal and outbox belong together), or --fresh to start over; if a backup is "
        "damaged, take another one"
    )
    log.unlink()
    assert "found no micro-batch" in refused(path)


def test_a_checkpoint_of_spark_that_is_gone(checkpoints: tuple[History, Path, Path], tmp_path: Path) -> None:
    path = copied(checkpoints[0].path, tmp_path / "damaged")
    shutil.rmtree(path / "spark")
    assert f"R698 checkpoint {path} is damaged; spark: expected micro-batch " in refused(path)
    (path / "application.json").unlink()
    assert "is damaged; application.json: expected the record of what journal/head belongs to" in refused(path)


def test_one_changed_number_of_the_record(checkpoints: tuple[History, Path, Path], tmp_path: Path) -> None:
    path = copied(checkpoints[0].path, tmp_path / "damaged")
    record = path / "application.json"
    record.write_text(record.read_text().replace('"buckets_per_partition": 4', '"buckets_per_partition": 5'))
    assert refused(path).startswith(f"R698 {record} is damaged; it does not fit its checksum")


def test_what_is_repaired_is_said(checkpoints: tuple[History, Path, Path], tmp_path: Path) -> None:
    main, path = checkpoints[0], copied(checkpoints[0].path, tmp_path / "damaged")
    last = max(int(file.name) for file in (path / "spark" / "offsets").iterdir())
    empty(path / "spark" / "offsets" / str(last))
    rest, (said,) = resumed(path)
    assert main.got + rest == main.sent
    name = f"spark/offsets/{last} of checkpoint {path}"
    assert said.startswith(f"R632 {name} was incomplete, as after a loss of power; it was written again from the copy")


def test_an_outbox_elsewhere_is_compared_when_it_has_answered(
    checkpoints: tuple[History, Path, Path], tmp_path: Path
) -> None:
    path = copied(checkpoints[0].path, tmp_path / "damaged")
    checkpoint, known = open_checkpoint(path), read_base(path / "outbox")
    last = Published.of(known)
    checkpoint.check_published(last)
    for wrong, said in (
        (
            Published(),
            f"outbox/log: expected micro-batch {last.batch}, which Spark has committed; found no micro-batch",
        ),
        (
            replace(last, batch=last.batch + 5),
            f"spark/offsets: expected micro-batch {last.batch + 5}, which the outbox",
        ),
        (replace(last, query="another"), "spark/metadata: expected query another, as the outbox has it; found query"),
        (replace(last, offsets=last.offsets.replace("offset", "offSet")), f"spark/offsets/{last.batch}: expected what"),
    ):
        with pytest.raises(RunError) as caught:
            checkpoint.check_published(wrong)
        assert f"R698 checkpoint {path} is damaged; {said}" in str(caught.value)


def test_micro_batches_of_a_rescale_are_not_published(checkpoints: tuple[History, Path, Path], tmp_path: Path) -> None:
    main, path = checkpoints[0], copied(checkpoints[0].path, tmp_path / "rescaled")
    last = Published.of(read_base(path / "outbox")).batch
    for log in ("offsets", "commits"):
        shutil.copyfile(path / "spark" / log / str(last), path / "spark" / log / str(last + 1))
    assert "R698" in refused(path)
    change_manifest(path, rescaled=(last, last + 1))
    rest, repairs = resumed(path)
    assert (main.got + rest, repairs) == (main.sent, [])
