"""Each case end to end, in one language: real sockets, local Spark, the expected lines and dead letters."""

from pathlib import Path

import pytest

from support.case import Case
from support.run import Receiver, Run, finish, framed

pytestmark = pytest.mark.jvm

# The word count has a file of its own: test_run_word_count.py. All cases run in memory, in each language, and all plans
# are compared (test_memory_cases.py, test_cases.py); these show what only Spark does: ticks and generators of the
# gateway, two workers in one task. Two sources at one state are in test_run_shared_state.py.
SHOWN = (
    pytest.param("alerts_windowed", "python", marks=pytest.mark.long),
    ("mixed_language", "python"),
)


@pytest.mark.parametrize(("name", "language"), SHOWN)
def test_case_gives_the_expected_output(name: str, language: str, tmp_path: Path) -> None:
    show(Case(name), language, tmp_path / "checkpoint")


def show(case: Case, language: str, checkpoint: Path, *options: str) -> None:
    """Run a case with options of `wallaroo run`, and compare what comes out with what it expects."""
    expected, inputs = case.expected(language), case.inputs()
    source, options = ",".join("127.0.0.1:0" for _ in inputs), (*case.setting("options", []), *options)
    with Receiver() as receiver, Run(case.app(language), receiver, checkpoint, *options, source=source) as run:
        run.ready()
        for number, messages in enumerate(inputs):
            with run.connect(number) as connection:
                connection.sendall(framed(messages))
                finish(connection)
        run.wait_while_alive(
            lambda: len(case.lines(receiver.data())) >= len(expected), lambda: f"{len(expected)} lines of {case.name}"
        )
        run.wait_for("dead_letters", case.setting("dead_letters"))
        assert run.stop() == 0, run.said()
        assert case.arranged(case.lines(receiver.data())) == case.arranged(expected)
        assert run.last("dead_letters") == case.setting("dead_letters")
        if inputs:
            assert run.last("messages_in") == sum(map(len, inputs))
