"""Tests of both groups in one process, where user-status reads the table that click-count writes, as with Kafka."""

from pathlib import Path

from wallaroo import KafkaRecord
from wallaroo.testing import run

APP = Path(__file__).parent / "app.py"


def click(user):
    """Return the record of a user's click."""
    return KafkaRecord("user-clicks", user, b"click")


def status(user, text):
    """Return the record of a user's status."""
    return KafkaRecord("user-status-updates", user, text)


def values(app, group):
    """Return the values in the table of a group, by key."""
    return {key: state.value for key, state in app.states(group).items() if state.value is not None}


def test_a_status_says_how_much_its_user_had_clicked():
    """Bob asks for Ann's clicks instead of setting a status."""
    with run(APP) as app:
        app.produce([click(b"ann"), click(b"ann"), click(b"cid")])
        app.produce([status(b"ann", b"away"), status(b"bob", b"@ann"), status(b"dan", b"new")])
        assert values(app, "user-status") == {
            "ann": b"away after 2 clicks",
            "bob": b"ann has clicked 2 times",
            "dan": b"new after 0 clicks",
        }


def test_counts_begin_again():
    """A visit deletes the counts. A status from before the visit stays."""
    with run(APP) as app:
        app.produce([click(b"ann")])
        app.produce([status(b"ann", b"away")])
        app.visit("reset")
        app.produce([click(b"ann")])
        assert values(app, "click-count") == {"ann": b"1"}
        assert values(app, "user-status") == {"ann": b"away after 1 clicks"}
