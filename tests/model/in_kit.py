"""Runs applications in Python with the SDK's test kit, as a test does: it sends messages, and lets time pass."""

from collections import Counter
from pathlib import Path

from model.application import PYTHON, Application
from model.compute import item_of
from model.in_go import START_MS, moves, sink_names
from model.outcome import Published
from wallaroo import testing
from wallaroo_runtime.memory.run import FIRST_MS


def run_in_kit(application: Application, _: Path) -> Published:
    """Run an application, and return what it gave."""
    assert application.main == PYTHON and not application.other
    with testing.run(application.program("main"), application.arguments("main")) as app:
        assert START_MS == FIRST_MS
        for move in moves(application.chunks):
            if "advance_ms" in move:
                app.advance(move["advance_ms"] / 1000)
            else:
                app.send([message.encode() for message in move["messages"]], f"in{move['source']}")
        lines = {at: [item_of(line.decode()) for line in app.output(str(at))] for at in range(len(application.sinks))}
        letters = Counter((letter.step, letter.sequence) for letter in app.dead_letters)
        errors = list(map(str, app.dead_letters))
    return Published(lines, letters, errors, sink_names(application), counts_ticks=False)
