"""A run that fails on every message says so while it runs, and does not end as if all were well."""

from pathlib import Path

import pytest

from support.dead_letter_app import APP
from support.run import Receiver, Run, framed, wallaroo

pytestmark = pytest.mark.jvm


def fail_on_every_message(app: Path, checkpoint: Path) -> None:
    """Run the program on 20 messages; each is a dead letter, and a finding says so."""
    app.write_text(APP, encoding="utf-8")
    with Receiver() as receiver, Run(app, receiver, checkpoint) as run:
        run.ready().send(framed([b"word"] * 20))
        run.wait_for("dead_letters", 20)
        assert run.stop() == 1, run.said()
        said = run.said()
    assert said.count('"R740"') == 2, said  # the first and the tenth
    assert 'a message is a dead letter at \\"shout\\"; C501 AttributeError' in said
    assert "return text.missing()" in said
    assert "all messages of this run, 20, are dead letters" in said and '"R741"' in said


def test_dead_letters_are_findings(tmp_path: Path) -> None:
    fail_on_every_message(tmp_path / "broken.py", tmp_path / "c")
    listed = wallaroo("dead-letters", "ls", "--group", tmp_path / "c", cwd=tmp_path)
    assert listed.stdout.splitlines()[1].split()[:3] == ["20", "C501", "shout"]


@pytest.mark.long
def test_dead_letters_of_an_earlier_run_are_no_failure(tmp_path: Path) -> None:
    app, checkpoint = tmp_path / "broken.py", tmp_path / "c"
    fail_on_every_message(app, checkpoint)
    with Receiver() as receiver, Run(app, receiver, checkpoint) as again:
        again.ready()
        assert again.stop() == 0, again.said()
        assert (again.last("messages_in"), again.last("dead_letters")) == (20, 20)
        assert set(again.last("run").values()) == {0}
