"""`wallaroo state rescale` between runs of the word count: counts go on with other numbers, also when it is killed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.run import framed, wallaroo
from support.word_bench import CASE, Bench

pytestmark = [pytest.mark.jvm, pytest.mark.long]
TEXTS = [" ".join(f"{chr(97 + (number * step) % 26)}{number % 7}" for step in (1, 5, 11)) for number in range(3000)]
KEYS = 26  # the case keeps a state for each first letter


@pytest.fixture(params=["python", "go"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(request.param, tmp_path / "checkpoint")
    try:
        yield made
    finally:
        made.close()


def process(bench: Bench, *options: object, texts: list[str] = TEXTS, app: Path | None = None) -> str:
    """Run until the texts have been counted once more; returns what the run said."""
    run = bench.start(*options, app=app)
    bench.expect(texts)
    run.send(framed(text.encode() for text in texts))
    bench.check()
    assert run.stop() == 0, run.said()
    return run.said()


def rescaled(bench: Bench, *options: object) -> dict[str, Any]:
    done = wallaroo("state", "rescale", bench.checkpoint, "--json", *options)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def manifest(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bench.checkpoint / "application.json").read_bytes())
    return found


def spark_directories(bench: Bench) -> list[str]:
    return sorted(entry.name for entry in bench.checkpoint.glob("spark*"))


def killed(bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str, *options: object) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("WALLAROO_FAULT", f"{point}:1")
        assert wallaroo("state", "rescale", bench.checkpoint, *options).returncode == -9


def test_counts_go_on_with_other_numbers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    process(bench)
    before = manifest(bench)
    assert (before["shuffle_partitions"], before["buckets_per_partition"]) == (2, 4)

    killed(bench, monkeypatch, "rescale.before_switch", "--partitions", 3)
    assert manifest(bench) == before
    assert spark_directories(bench) == ["spark", "spark-2"]
    told = rescaled(bench, "--partitions", 3, "--buckets", 5)
    assert told["partitions"] == [2, 3]
    assert told["buckets"] == [4, 5]
    assert told["keys"] == KEYS
    assert spark_directories(bench) == ["spark-2"]
    assert not (bench.checkpoint / "rescale").exists()
    process(bench)

    again = wallaroo("state", "rescale", bench.checkpoint, "--partitions", 3)
    assert again.stdout == "3 shuffle partitions of 5 buckets, as before; nothing to do\n"


@pytest.mark.parametrize("bench", ["python"], indirect=True)
@pytest.mark.parametrize("point", ["before_publish", "before_record", "before_commit"])
def test_counts_go_on_where_a_driver_left_a_micro_batch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """What is planned alone is read again with the new numbers; what is published needs a run before."""
    process(bench)
    with monkeypatch.context() as patch:
        patch.setenv("WALLAROO_FAULT", f"driver.{point}:1")
        run = bench.start()
        bench.expect(TEXTS)
        run.send(framed(text.encode() for text in TEXTS))
        assert run.end() == -9, run.said()
    if point == "before_commit":
        refused = wallaroo("state", "rescale", bench.checkpoint, "--partitions", 3)
        assert refused.returncode == 2
        assert "is published and not committed" in refused.stderr
        run = bench.start("--stop-when-idle", 1)
        bench.check()
        assert run.end() == 0, run.said()
    assert rescaled(bench, "--partitions", 3, "--buckets", 5)["keys"] == KEYS
    process(bench)


@pytest.mark.parametrize("bench", ["python"], indirect=True)
def test_a_partition_has_more_buckets_than_a_worker_has_threads(bench: Bench, tmp_path: Path) -> None:
    letters = [chr(0x4E00 + number) for number in range(900)]
    app, text = tmp_path / "app.py", CASE.app("python").read_text()
    app.write_text(
        text.replace("letters = [", "letters = [*map(chr, range(0x4E00, 0x4E00 + 900)), ").replace(
            "def first_letter(data):", "def first_letter(data):\n    if data >= chr(0x4E00):\n        return data[0]\n"
        )
    )
    process(bench, texts=letters, app=app)
    assert rescaled(bench, "--partitions", 1, "--buckets", 600)["keys"] == len(letters)
    process(bench, texts=letters, app=app)
