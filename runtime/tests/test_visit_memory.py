"""Visits of state computations, in memory: which keys, in what order, what visitors may do, what fails."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wallaroo
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.testing import Run, run

STEPS = {"put": "a=1", "fail": "a=!"}


class Last:
    """The state of a key: its last value."""

    def __init__(self) -> None:
        self.value = ""


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data: bytes) -> list[str]:
    return data.decode().split("=")


@wallaroo.encoder
def encode(text: str) -> bytes:
    return text.encode()


@wallaroo.key_extractor
def key(message: list[str]) -> str:
    return message[0]


class Keep:
    """Keeps a value for each key; its visitors do one thing each."""

    visits = ("show", "set", "set failing", "forget", "spoil")

    def name(self) -> str:
        return "keep"

    def compute(self, message: list[str], state: Last) -> Any:
        state.value = message[1]
        return None, message[1] != "unsaved"

    def visit(self, name: str, metadata: bytes, key: str, state: Last) -> Any:
        text = metadata.decode()
        if name == "show":
            return f"{key}={state.value}{text}", False
        if name == "forget":
            return wallaroo.Deleted(f"{key} forgotten") if state.value == text else (None, False)
        state.value += text
        if name == "set failing" and key == "b":
            msg = f"{key} fails"
            raise ValueError(msg)
        if name == "spoil":
            state.value = lambda: 0  # type: ignore[assignment]
        return None, True


@wallaroo.partition
def partition(message: list[str]) -> str:
    return message[0]


def application(args: list[str]) -> wallaroo.Application:
    builder = wallaroo.ApplicationBuilder("visits")
    builder.new_pipeline("main", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode))
    builder.to_state_partition(Keep(), Last, "last", partition)
    builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
    return builder.build()


def sent(app: Run, *texts: str) -> None:
    app.send([text.encode() for text in texts])


def shown(app: Run) -> dict[str, str]:
    """Return what a visit shows of each key."""
    app.clear()
    app.visit("show")
    return dict(output.decode().split("=", 1) for output in app.output())


def test_each_key_with_state_is_visited_in_order_of_its_bytes() -> None:
    with run(application) as app:
        assert app.visit("show") == 0
        sent(app, "b=1", "a=2", "b=3", "c=unsaved")
        assert app.visit("show", b"!") == 2
        assert sorted(app.output()) == [b"a=2!", b"b=3!"]


def test_a_visitor_changes_and_deletes_states() -> None:
    with run(application) as app:
        sent(app, "a=1", "b=2", "c=1")
        assert app.visit("set", b"x") == 3
        assert shown(app) == {"a": "1x", "b": "2x", "c": "1x"}
        assert app.visit("forget", b"1x") == 3
        assert shown(app) == {"b": "2x"}
        assert app.state("last", "a") is None
        sent(app, "a=5")
        assert shown(app) == {"a": "5", "b": "2x"}


@pytest.mark.parametrize(("visit", "code"), [("set failing", "C501"), ("spoil", "C504")])
def test_a_visitor_that_fails_costs_its_key_alone(visit: str, code: str) -> None:
    with run(application) as app:
        sent(app, "a=1", "b=2")
        assert app.visit(visit, b"x") == 2
        letters = {(letter.key, letter.code, letter.step, bytes(letter.message)) for letter in app.dead_letters}
        failed = {"b"} if code == "C501" else {"a", "b"}
        assert letters == {(key, code, "keep", b"x") for key in failed}
        assert shown(app) == {key: {"a": "1", "b": "2"}[key] + ("" if key in failed else "x") for key in "ab"}


def test_fail_stops_the_application_at_a_visitor() -> None:
    with run(application, on_error="fail") as app:
        sent(app, "a=1", "b=2")
        with pytest.raises(DiagnosticError, match="R611"):
            app.visit("set failing", b"x")
        assert shown(app) == {"a": "1", "b": "2"}


@settings(max_examples=20, deadline=None)
@given(st.text(max_size=4), st.integers() | st.none() | st.lists(st.integers(0, 255)))
def test_a_text_is_the_value_of_a_visit_as_its_bytes_are(text: str, other: object) -> None:
    shows = []
    for metadata in (text, text.encode()):
        with run(application) as app:
            sent(app, "a=1", "b=2")
            assert app.visit("set failing", metadata) == 2
            shows.append((shown(app), [letter.error for letter in app.dead_letters]))
            with pytest.raises(DiagnosticError) as caught:
                app.visit("set failing", other)  # type: ignore[arg-type]
            assert str(caught.value).startswith('R733 visit "set failing": it cannot take ')
    assert shows[0] == shows[1]


def test_an_unknown_visit_is_refused() -> None:
    with run(application) as app, pytest.raises(DiagnosticError, match='R720.*"shows".*"show"'):
        app.visit("shows")
