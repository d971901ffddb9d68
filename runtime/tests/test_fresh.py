"""`wallaroo run --fresh`: it removes the application's own checkpoint, says what that was, and no other one."""

import contextlib
import os
import random
import shlex
from pathlib import Path
from typing import Any

import pytest

from support.history import STEPS, History, resumed
from support.line_program import line_program
from support.small_checkpoint import copied, files_of, word_count
from support.written import written
from wallaroo_runtime.checkpoint.directory import MANIFEST
from wallaroo_runtime.checkpoint.lock import LOCK, HeldDirectory
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.console.reporter import TextReporter
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run.start_over import start_over

APP = line_program("Sessions")


@pytest.mark.slow
def test_the_checkpoint_of_another_application_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app, path = tmp_path / "sessions.py", written(tmp_path / "a checkpoint", "Top pages")
    app.write_text(APP)
    before = sorted(path.rglob("*"))
    assert main(["run", str(app), "--checkpoint", str(path), "--fresh"]) == 1
    assert sorted(path.rglob("*")) == before
    assert (
        f'R603 checkpoint {path} belongs to application "Top pages", not to "Sessions"\n'
        f"  fix: give another --checkpoint, or remove the existing checkpoint by hand: rm -r "
        f"{shlex.quote(str(path))}; --fresh "
        "removes no checkpoint of another application\n" in capsys.readouterr().err
    )


def test_what_is_removed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = HeldDirectory.take(written(tmp_path / "checkpoint", "Sessions"))
    start_over(place, "Sessions", TextReporter())
    said = f'--fresh removes checkpoint {place.path} of "Sessions": 5,000 messages of its journal processed'
    assert capsys.readouterr().err == f"{said}\n"
    start_over(place, "Sessions", TextReporter())
    assert capsys.readouterr().err == "", "there is nothing left"
    place.release()
    assert [entry.name for entry in place.path.iterdir()] == [LOCK]


@pytest.mark.parametrize("damaged", [MANIFEST, "spark-2/offsets/3"])
def test_what_is_damaged_is_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str], damaged: str) -> None:
    place = HeldDirectory.take(written(tmp_path / "checkpoint", "Sessions"))
    (place.path / damaged).write_text("{")
    start_over(place, "Sessions", TextReporter())
    place.release()
    said = "application.json is damaged; " if damaged == MANIFEST else 'of "Sessions": its positions cannot be read'
    assert said in capsys.readouterr().err
    assert [entry.name for entry in place.path.iterdir()] == [LOCK]


class Remote:
    """A checkpoint at a URL, as far as it is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return "hdfs://name/check point"

    @property
    def removal(self) -> str:
        return f"hadoop fs -rm -r {shlex.quote(str(self))}"

    def names(self, name: str) -> list[str]:
        return [path.name for path in (self.path / name).glob("*")]

    def read(self, name: str) -> bytes | None:
        return (self.path / name).read_bytes()

    def remove(self, name: str) -> None:
        self.removed = name

    def clear(self) -> None:
        assert self.removed == MANIFEST  # first
        self.path = Path("/nowhere")


def test_a_checkpoint_at_a_url(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = Remote(written(tmp_path / "checkpoint", "Sessions"))
    with pytest.raises(RunError) as caught:
        start_over(directory, "Top pages", TextReporter())  # type: ignore[arg-type]
    assert str(caught.value).endswith(
        "remove the existing checkpoint by hand: hadoop fs -rm -r 'hdfs://name/check point'; "
        "--fresh removes no checkpoint of another application"
    )
    start_over(directory, "Sessions", TextReporter())  # type: ignore[arg-type]
    assert capsys.readouterr().err == (
        '--fresh removes checkpoint hdfs://name/check point of "Sessions": 5,000 messages of its journal processed\n'
    )
    assert directory.path == Path("/nowhere")


@pytest.mark.parametrize("seed", range(4))
def test_a_removal_that_is_killed_leaves_nothing_that_goes_on(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, unlink, left = random.Random(seed), os.unlink, 0

    def killed(*arguments: Any, **options: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        unlink(*arguments, **options)

    before = History(tmp_path / "before", draw)
    before.go_on(draw.randint(1, 4), draw.randint(0, len(STEPS)))
    (before.path / "dead-letters" / "query-m-0-0.frames").write_bytes(b"")
    for number in range(1, len(files_of(before.path)) + 1):
        place = HeldDirectory.take(copied(before.path, tmp_path / "checkpoint"))
        left = number
        with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
            patch.setattr(os, "unlink", killed)
            start_over(place, word_count().name, TextReporter(is_quiet=True))
        place.release()
        try:
            got, _ = resumed(place.path)
        except RunError as error:
            assert "R698" in str(error) and "--fresh" in str(error)
            continue
        assert (got, list((place.path / "dead-letters").iterdir())) == ([], [])
