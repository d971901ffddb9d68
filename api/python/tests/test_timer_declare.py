"""The declaration of timers and of a time to live: what the document says, and what is refused; the test kit."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import wallaroo
from wallaroo import testing
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.emit.topology import topology
from wallaroo.message.timer import LAST_MS, WrongTimerError

HOUR = timedelta(hours=1)


class Session:
    """The messages of a key since the last pause."""

    def __init__(self) -> None:
        self.seen: list[str] = []


def session_of(ttl: timedelta | None = None) -> Any:
    """Return a step that closes sessions, declared with the decorators."""

    @wallaroo.state_computation("session", state=Session, ttl=ttl)
    def session(data: str, state: Session, timers: wallaroo.Timers) -> str | None:
        state.seen.append(data)
        timers.set("close", after=timedelta(seconds=5))
        if data == "stray":
            timers.set("stray", at=0)
        if data == "late":
            timers.set("close", at=LAST_MS + 1)
        if data == "forget":
            timers.delete("close")
        return None

    @session.timer("close")
    def close(key: str, state: Session, time: int) -> Any:
        return wallaroo.Deleted(f"{key} {time} {','.join(state.seen)}")

    return session


@wallaroo.line_decoder
def decode(bs: bytes) -> str:
    return bs.decode()


@wallaroo.line_decoder(event_time=lambda bs: int(bs.split()[1]))
def decode_timed(bs: bytes) -> str:
    return bs.decode()


@wallaroo.encoder
def encode(data: object) -> str:
    return str(data)


@wallaroo.key_extractor
def first(data: str) -> str:
    return data[0]


@wallaroo.partition
def letter(data: str) -> str:
    return data[0]


def declared(step: Any, decoder: Any = decode) -> Any:
    lines = wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", "7010", decoder))
    out = wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode)
    return wallaroo.build_application("Sessions", lines.key_by(first).to(step).to_sink(out))


def document(app: Any) -> list[dict[str, Any]]:
    return list(topology(app, ".", "app.py", [])["pipelines"][0]["steps"])


def findings(make: Any) -> list[str]:
    with pytest.raises(DiagnosticError) as caught:
        make()
    return [f"{str(each).splitlines()[0]}; {each.fix}" for each in caught.value.diagnostics]


def test_ttl_timers_and_time_are_in_the_document() -> None:
    _, step = document(declared(session_of(HOUR)))
    assert list(step)[4:8] == ["state", "timers", "time", "codec"]
    assert (list(step["state"])[:2], step["state"]["ttl_ms"]) == (["name", "ttl_ms"], 3_600_000)
    assert (step["timers"], step["time"]) == (["close"], "ingest")
    assert document(declared(session_of(HOUR), decode_timed))[1]["time"] == "event"


class Closing:
    """The same as a class, for a state that the pipeline names."""

    ttl: Any = HOUR
    timers: Any = ("close",)

    def name(self) -> str:
        return "closing"

    def compute(self, data: str, state: Session, timers: wallaroo.Timers) -> tuple[str | None, bool]:
        state.seen.append(data)
        timers.set("close", at=datetime(2026, 1, 1, 0, 0, 5))
        return None, False

    def timer(self, name: str, key: str, state: Session, time: int) -> tuple[str, bool]:
        return f"{name} {key} {time} {state.seen}", False


class Counting:
    """Shares its state."""

    def name(self) -> str:
        return "counting"

    def compute(self, data: str, state: Session) -> tuple[int, bool]:
        return len(state.seen), True


class CountingAnHour(Counting):
    ttl = HOUR


def built(*computations: Any) -> Any:
    builder = wallaroo.ApplicationBuilder("Closing")
    for number, (computation, decoder) in enumerate(computations):
        builder.new_pipeline(f"line {number}", wallaroo.TCPSourceConfig("127.0.0.1", f"{7010 + number}", decoder))
        builder.to_state_partition(computation, Session, "sessions", letter)
        builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", f"{7002 - number}", encode))
    return builder.build()


def test_a_part_of_a_millisecond_of_a_ttl_counts_as_a_whole_one() -> None:
    _, step = document(declared(session_of(timedelta(microseconds=1001))))
    assert step["state"]["ttl_ms"] == 2


def test_steps_with_one_state_have_one_time() -> None:
    app = built((Closing, decode_timed), (CountingAnHour, decode))
    assert [step.time for line in app.pipelines for step in line.steps] == ["ingest", "ingest"]
    app = built((Closing, decode_timed), (CountingAnHour, decode_timed))
    assert [step.time for line in app.pipelines for step in line.steps] == ["event", "event"]


class Stateless:
    timers = ("close",)

    def name(self) -> str:
        return "stateless"

    def compute(self, data: str) -> str:
        return data

    def timer(self, name: str, key: str, state: Any, time: int) -> None:
        """Never run."""


@wallaroo.state_computation("forgetful", state=Session)
def forgetful(data: str, state: Session, timers: wallaroo.Timers) -> None:
    """Declare no timer."""


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"timers": ("close", "close")}, "T207 to_state_partition: parameter timers is ('close', 'close'); expected"),
        ({"timers": ("a\n",)}, "T210 timer name 'a\\n' is not usable; it has control characters"),
        ({"timers": ()}, 'T207 state_computation "closing": parameter timers is none, but it takes `timers`'),
        ({"timer": None}, "T223 "),
        ({"timer": lambda self, name: None}, 'T202 timer "closing": '),
        ({"ttl": 60}, 'T207 state_computation "closing": parameter ttl is 60; expected a timedelta of 1 ms'),
        ({"ttl": timedelta(0)}, 'T207 state_computation "closing": parameter ttl is datetime.timedelta(0); expected a'),
    ],
)  # fmt: skip
def test_what_is_refused(change: dict[str, Any], expected: str) -> None:
    (found,) = findings(lambda: built((type("Changed", (Closing,), change), decode)))
    assert found.startswith(expected)


def test_what_is_refused_of_functions() -> None:
    (found,) = findings(lambda: wallaroo.state_computation("s", state=Session, ttl=timedelta(days=-1))(lambda a, b: a))  # type: ignore[arg-type,misc]
    assert found.startswith(
        "T207 state_computation: parameter ttl is datetime.timedelta(days=-1); expected a timedelta"
    )
    assert found.endswith("write e.g. ttl=timedelta(hours=1)")
    (found,) = findings(lambda: declared(forgetful))
    assert found.startswith('T207 state_computation "forgetful": parameter timers is none, but it takes `timers`')
    (found,) = findings(lambda: declared(Stateless))
    assert found.startswith(
        "T207 computation \"stateless\": parameter timers is ('close',); expected none: it has no state"
    )
    session = session_of()
    for name, function, code in (("close", lambda *_: None, "T207"), ("other", lambda key: None, "T202")):
        (found,) = findings(lambda: session.timer(name)(function))  # noqa: B023
        assert found.startswith(code)
    (found,) = findings(lambda: wallaroo.offer(session_of(HOUR)))
    assert "which has timers or a ttl" in found


def test_what_a_timer_is_set_to() -> None:
    timers = wallaroo.Timers(1000, ("close",))
    for how, due in (
        ({"after": timedelta(microseconds=2001)}, 1003),
        ({"after": timedelta(microseconds=1)}, 1001),
        ({"after": timedelta(0)}, 1000),
        ({"at": datetime(1970, 1, 1, 1, tzinfo=timezone(HOUR))}, 0),
        ({"at": datetime(1970, 1, 1, 1)}, 3_600_000),
        ({"at": datetime(1970, 1, 1, 0, 0, 0, 1)}, 1),
        ({"at": datetime(1969, 12, 31, 23, 59, 59, 998_001)}, -1),
        ({"at": datetime.max}, LAST_MS),
        ({"at": 2000.5}, 2001),
        ({"at": -7.9}, -7),
    ):
        timers.set("close", **how)  # type: ignore[arg-type]
        assert timers.changes == {"close": due}
    for how in ({}, {"after": timedelta(-1)}, {"after": 5}, {"at": "5"}, {"at": float("nan")}, {"after": HOUR, "at": 0},
                {"at": LAST_MS + 1}, {"after": timedelta(days=999_999_999)},
                {"after": timedelta.max}, {"at": True}):  # fmt: skip
        with pytest.raises(WrongTimerError):
            timers.set("close", **how)  # type: ignore[arg-type]


def test_the_kit_moves_time_by_exactly_what_is_said() -> None:
    with testing.run(lambda args: declared(session_of(HOUR))) as app:
        app.send([b"a1", b"b1"])
        app.advance(4.999)
        app.send([b"b2"])
        assert app.output() == []
        app.advance(0.001)
        assert app.output() == [b"a 1767225605000 a1"]
        assert list(app.states("session")) == ["b"] and app.state("session", "b").seen == ["b1", "b2"]
        app.send([b"stray", b"late"])
        assert [(each.code, str(each.error)) for each in app.dead_letters] == [
            ("C529", 'timer "stray" is not declared; the step has "close"'),
            ("C529", 'timer "close" is set with at=253402300800000'),
        ]
        app.send([b"forget"])
        app.advance(HOUR - timedelta(milliseconds=1))
        assert list(app.states("session")) == ["f"]
        app.advance(0.001)
        assert app.states("session") == {}


@pytest.mark.parametrize("times", [[200], [20, 180], [0, 100, 0, 100], [199, 1]])
def test_silence_is_counted_from_the_message(times: list[int]) -> None:
    with testing.run(lambda args: declared(session_of(timedelta(milliseconds=200)), decode_timed)) as app:
        app.send([b"forget 1000"])
        for time in times:
            assert app.states("session") != {}
            app.advance(timedelta(milliseconds=time))
        assert app.states("session") == {}


def test_a_timer_that_is_set_again_runs_for_each_time() -> None:
    @wallaroo.state_computation("beat", state=Session)
    def beat(data: str, state: Session, timers: wallaroo.Timers) -> None:
        timers.set("beat", after=timedelta(seconds=1))

    @beat.timer("beat")
    def again(key: str, state: Session, time: int, timers: wallaroo.Timers) -> int:
        timers.set("beat", after=timedelta(seconds=1))
        return time - 1_767_225_600_000

    with testing.run(lambda args: declared(beat)) as app:
        app.send([b"a"])
        app.advance(HOUR / 2)
        assert app.output() == [b"%d" % (second * 1000) for second in range(1, 1801)]


def test_classes_with_timers_run() -> None:
    with testing.run(lambda args: built((Closing, decode))) as app:
        app.send([b"a1"])
        app.advance(5)
        assert app.output() == [b"close a 1767225605000 ['a1']"]
        assert app.state("sessions", "a").seen == ["a1"]
