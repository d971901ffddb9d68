"""How far apart the gateway's syncs are."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.gateway.intake import PACE_S, PACED_RATE, RATE_S, SyncPace


def intervals(arrivals: Sequence[tuple[float, int]]) -> list[float]:
    """Return the interval after each of some turns: seconds since the one before, and messages that came."""
    pace, now, messages = SyncPace(), 1000.0, 0
    found = []
    for elapsed, count in arrivals:
        now, messages = now + elapsed, messages + count
        pace.look(now, messages)
        found.append(pace.interval_s)
    return found


@pytest.mark.parametrize(("rate", "expected"), [(1000, 0.0), (7000, 0.0), (9000, PACE_S), (200_000, PACE_S)])
def test_syncs_wait_for_more_at_high_rates_alone(rate: int, expected: float) -> None:
    assert intervals([(0.001, rate // 1000)] * 50)[-1] == expected


@given(st.lists(st.tuples(st.floats(0, 0.1), st.integers(0, 2000)), max_size=50))
def test_a_message_after_a_pause_never_waits(arrivals: list[tuple[float, int]]) -> None:
    assert intervals([*arrivals, (1.0, 1)])[-1] == 0.0


@given(st.lists(st.tuples(st.integers(0, 20).map(lambda n: n / 1024), st.integers(0, 400)), min_size=1, max_size=50))
def test_only_what_came_since_the_last_look_counts(arrivals: list[tuple[float, int]]) -> None:
    since, count, expected = 1000.0, 0, 0.0  # the first look is long after the machine's start
    for index, ((elapsed, came), found) in enumerate(zip(arrivals, intervals(arrivals), strict=True)):
        since, count = since + elapsed, count + came
        if since >= RATE_S:
            expected = PACE_S if count > PACED_RATE * since else 0.0
            since, count = 0.0, 0
        assert found == expected, index
