"""A worker and a runtime find the version that both speak."""

from hypothesis import given
from hypothesis import strategies as st

from wallaroo.message.handshake import common_version

RANGES = st.tuples(st.integers(0, 12), st.integers(0, 12))


@given(RANGES, RANGES)
def test_the_common_version_is_the_highest_in_both_ranges(ours: tuple[int, int], theirs: tuple[int, int]) -> None:
    both = {*range(ours[0], ours[1] + 1)} & {*range(theirs[0], theirs[1] + 1)} - {0}
    assert common_version(ours, theirs) == max(both, default=0)
