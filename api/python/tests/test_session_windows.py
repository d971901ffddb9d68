"""Session windows as programs declare them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallaroo
from wallaroo import WallarooParameterError
from wallaroo.component.window import LATE


class Clicks(wallaroo.Aggregation):
    def initial_accumulator(self) -> Any:
        return [0]

    def update(self, input: Any, accumulator: Any) -> None:
        accumulator[0] += 1

    def combine(self, accumulator1: Any, accumulator2: Any) -> Any:
        return [accumulator1[0] + accumulator2[0]]

    def output(self, key: Any, accumulator: Any) -> Any:
        return accumulator[0]


def declared(*, event_time: bool) -> Any:
    sessions = wallaroo.session_windows(wallaroo.seconds(30)).with_delay(wallaroo.seconds(5))
    return sessions.with_late_data_policy("place-in-oldest-window").over(Clicks).document(has_event_time=event_time)


@pytest.mark.parametrize(("event_time", "time"), [(False, "ingest"), (True, "event")])
def test_sessions(event_time: bool, time: str) -> None:
    assert declared(event_time=event_time) == {
        "kind": "session", "gap_ms": 30_000, "delay_ms": 5000, "late": "place_in_oldest_window", "time": time,
    }  # fmt: skip


def test_what_is_left_out() -> None:
    fields = wallaroo.session_windows(wallaroo.milliseconds(7)).over(Clicks).fields
    assert fields == {"kind": "session", "gap_ms": 7, "delay_ms": 0, "late": "drop"}


@pytest.mark.parametrize(
    ("declare", "expected"),
    [
        (lambda: wallaroo.session_windows(0), "session_windows: parameter gap_ns is 0; expected nanoseconds, 1 ms to"),
        (
            lambda: wallaroo.session_windows(wallaroo.hours(9000)),
            "session_windows: parameter gap_ns is 32400000000000000; expected nanoseconds, 1 ms to 365 days",
        ),
        (
            lambda: wallaroo.session_windows(1_000_000).with_late_data_policy("keep"),
            "with_late_data_policy: parameter policy is 'keep'; expected",
        ),
        (
            lambda: wallaroo.session_windows(1_000_000).with_delay(0).with_delay(0),
            "with_delay: parameter delay is 0; expected one call of with_delay",
        ),
    ],
)
def test_sessions_that_cannot_be(declare: Any, expected: str) -> None:
    with pytest.raises(WallarooParameterError) as caught:
        declare()
    (finding,) = caught.value.diagnostics
    assert f"{finding.code} {finding.message}".startswith(f"T207 {expected}")
    assert finding.file.endswith("test_session_windows.py")


WRONG = st.one_of(
    st.none(), st.booleans(), st.floats(), st.lists(st.integers()), st.integers(max_value=-1),
    st.text().filter(lambda text: text not in LATE),
)  # fmt: skip


@given(
    st.sampled_from(("session_windows", "range_windows")),
    st.sampled_from(("with_delay", "with_late_data_policy")),
    WRONG,
)
def test_the_remedy_for_any_wrong_value_shows_the_same_windows(function: str, method: str, value: Any) -> None:
    windows = getattr(wallaroo, function)(1_000_000)
    with pytest.raises(WallarooParameterError) as caught:
        getattr(windows, method)(value)
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.fix.startswith(f"write e.g. {function}(wallaroo.seconds(")) == ("T207", True)


def test_a_builder_alone_is_no_window() -> None:
    source = wallaroo.source("in", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode))
    line = source.collect().to(wallaroo.session_windows(1_000_000))  # type: ignore[arg-type]
    with pytest.raises(WallarooParameterError, match="expected windows with an aggregation"):
        wallaroo.build_application("app", line.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)))


@wallaroo.line_decoder
def decode(line: bytes) -> str:
    return line.decode()


@wallaroo.line_encoder
def encode(text: str) -> str:
    return text
