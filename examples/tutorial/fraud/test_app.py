"""Tests of the fraud detection and its two sinks."""

from pathlib import Path

from wallaroo.testing import run

APP = Path(__file__).parent / "app.py"


def test_what_is_far_above_the_average_goes_to_the_second_sink():
    """The test names the sinks by their positions, "0" and "1"."""
    with run(APP) as app:
        app.send([b"ada 10", b"ada 20", b"ada 30", b"ada 101", b"ada 100"])
        assert app.output("0") == [b"ada 10\n", b"ada 30\n", b"ada 60\n", b"ada 160\n"]
        assert app.output("1") == [b"ada refused 101\n"]
        assert app.state("book", "ada").count == 4


def test_cards_do_not_meet():
    """A card without payments has no average, so its first payment is never refused."""
    with run(APP) as app:
        app.send([b"ada 1", b"ada 1", b"ada 1", b"bob 1000"])
        assert app.output("1") == []


def test_an_unreadable_payment_is_a_dead_letter():
    """The decoder fails on one payment. The other payments are booked."""
    with run(APP) as app:
        app.send([b"ada ten", b"ada 10"])
        (letter,) = app.dead_letters
        assert (letter.step, letter.code, letter.message) == ("payments", "C505", b"ada ten")
        assert app.output("0") == [b"ada 10\n"]
