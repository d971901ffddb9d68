"""Go workers killed at random, each with a call in flight: the small form of `make fault-go`."""

import pytest

from soak import options_of, soak

pytestmark = [pytest.mark.jvm, pytest.mark.long]


def test_go_workers_die_with_calls_in_flight_and_the_output_is_exact() -> None:
    options = options_of(["--messages=20000", "--rate=200", "--worker-kills=5", "--victims=workers", "--seed=7"])
    assert soak("go", options)
