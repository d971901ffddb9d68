"""Times of Kafka's records become latencies in micro-batches."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from wallaroo.message.frame import encode_frame
from wallaroo_runtime.spark.task.stage import arrivals_of_records

NOW = 1_800_000_000_000


@given(
    st.lists(st.one_of(st.integers(0, 100), st.integers(0, 10**9)), min_size=1, max_size=200),
    st.integers(-1000, 10**9),
)
def test_each_record_has_the_age_of_its_time_to_3_percent(afters: list[int], age: int) -> None:
    first = NOW - age
    found = arrivals_of_records(encode_frame([b"x"] * len(afters), port=0, timestamp_ms=first, timestamps=afters), NOW)
    assert found.total() == len(afters)
    exact, counted = sorted(first + after for after in afters), sorted(found.elements())
    for at, rounded in zip(exact, counted, strict=True):
        assert 0 <= at - rounded <= abs(NOW - at) / 32
    assert len(found) <= 64 * 2 * 31  # however many there are


def test_records_of_one_time_are_one_entry() -> None:
    assert arrivals_of_records(encode_frame([b"x"] * 5, port=0, timestamp_ms=NOW - 7), NOW) == Counter({NOW - 7: 5})
