"""Go workers killed at random, each with a call in flight: the small form of `make fault-go`."""

import pytest

from soak import options_of, soak

pytestmark = [pytest.mark.jvm, pytest.mark.long]


@pytest.mark.parametrize(("mode", "messages", "kills"), [("microbatch", 20_000, 5), ("realtime", 10_000, 3)])
def test_go_workers_die_with_calls_in_flight_and_the_output_is_exact(mode: str, messages: int, kills: int) -> None:
    counts = [f"--messages={messages}", "--rate=200", f"--worker-kills={kills}"]
    assert soak("go", options_of([*counts, "--victims=workers", "--seed=7", f"--mode={mode}"]))
