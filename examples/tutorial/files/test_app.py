"""Tests of the errors, without files and without Spark."""

from pathlib import Path

from wallaroo.testing import run

APP = Path(__file__).parent / "app.py"


def test_errors_are_counted_by_service():
    """The sink gets records with key and value."""
    with run(APP) as app:
        app.send([b"web ERROR no disk", b"web INFO fine", b"web ERROR no disk", b"mail ERROR no net"])
        assert sorted((record.key, record.value) for record in app.records()) == [
            (b"mail", b"1"),
            (b"web", b"1"),
            (b"web", b"2"),
        ]
