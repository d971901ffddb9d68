"""Timers in tests of users: what `advance` does if they set themselves again."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

import wallaroo
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.testing import run


@wallaroo.line_decoder
def decode(line: bytes) -> int:
    return int(line)


@wallaroo.line_encoder
def encode(count: int) -> str:
    return str(count)


@wallaroo.key_extractor
def one(_: int) -> str:
    return ""


def polling(step_ms: int) -> Callable[[Sequence[str]], Any]:
    """Return an application whose timer sets itself as often as the message says."""

    @wallaroo.state_computation("poll", state=list)
    def poll(count: int, left: list[int], timers: wallaroo.Timers) -> None:
        left[:] = [count]
        timers.set("again", after=timedelta(0))

    @poll.timer("again")
    def again(_: Any, left: list[int], time: int, timers: wallaroo.Timers) -> int | None:
        left[0] -= 1
        if left[0]:
            timers.set("again", at=time + step_ms)
        return None if left[0] else time

    def setup(args: Sequence[str]) -> Any:
        lines = wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode)).key_by(one)
        sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)
        return wallaroo.build_application("Polling", lines.to(poll).to_sink(sink))

    return setup


@pytest.mark.parametrize(("step_ms", "count", "seconds"), [(0, 1500, 1), (-1, 900, 0), (1, 20_000, 20)])
def test_timers_that_set_themselves_run_until_they_stop(step_ms: int, count: int, seconds: int) -> None:
    with run(polling(step_ms)) as app:
        begin = app.now_ms
        app.send([b"%d" % count])
        app.advance(seconds)
        assert app.output() == [b"%d\n" % (begin + step_ms * (count - 1))]


def test_a_timer_that_is_always_due_ends_the_test() -> None:
    with run(polling(0)) as app:
        app.send([b"-1"])
        with pytest.raises(DiagnosticError) as caught:
            app.advance(1)
        (found,) = caught.value.diagnostics
        assert str(found) == (  # `wallarootest` says the same
            "R721 advance cannot take 1 s; timers still run after 2000 more ticks of this time: one sets itself to a "
            "time that is over\n"
            "  fix: let it set itself to a later time, or not in each run"
        )
