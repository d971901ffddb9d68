"""Tests of the averages. The time is in the data, so the tests need no clock."""

from pathlib import Path

from wallaroo.testing import run

APP = Path(__file__).parent / "app.py"
BEGIN = 1_700_000_000_000


def reading(second, sensor, degrees):
    """Return a reading as bytes, as it arrives over TCP."""
    return f"{BEGIN + 1000 * second} {sensor} {degrees}".encode()


def test_a_window_is_emitted_once_time_has_passed_its_end():
    """The first window ends at 10 s and waits 10 s more for late readings."""
    with run(APP) as app:
        app.send([reading(0, "roof", 10), reading(9, "roof", 20), reading(19, "roof", 99)])
        assert app.output() == []
        app.send([reading(20, "roof", 99)])
        assert app.output() == [b"roof 15.0\n"]


def test_a_late_reading_counts_where_it_belongs():
    """The reading comes nine seconds after the end of its window, which waits ten seconds."""
    with run(APP) as app:
        app.send([reading(0, "roof", 10), reading(19, "roof", 99), reading(8, "roof", 30), reading(20, "roof", 99)])
        assert app.output() == [b"roof 20.0\n"]
