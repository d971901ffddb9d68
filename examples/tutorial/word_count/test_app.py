"""Tests of the word count, without Spark: `python -m pytest`."""

from pathlib import Path

from wallaroo.testing import run

APP = Path(__file__).parent / "app.py"


def test_words_are_counted() -> None:
    """Send a line, and check the totals and the state of a word."""
    with run(APP) as app:
        app.send([b"My oh my"])
        assert sorted(app.output()) == [b"my 1\n", b"my 2\n", b"oh 1\n"]  # only totals of one word are in order
        assert app.state("count", "my").count == 2


def test_what_is_no_text_is_a_dead_letter() -> None:
    """A line that is no UTF-8 becomes a dead letter. Other lines are processed."""
    with run(APP) as app:
        app.send([b"\xff", b"oh"])
        assert app.output() == [b"oh 1\n"]
        assert [letter.step for letter in app.dead_letters] == ["lines"]
