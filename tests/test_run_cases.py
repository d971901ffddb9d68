"""Each case end to end, in each language: real sockets, local Spark, the expected lines and dead letters."""

from pathlib import Path

import pytest

from case import LANGUAGES, Case
from run import Receiver, Run, framed

pytestmark = pytest.mark.jvm


# The word count has a file of its own: test_run_word_count.py.
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["reverse", "celsius", "alphabet"])
def test_case_gives_the_expected_output(name: str, language: str, tmp_path: Path) -> None:
    case = Case(name)
    expected = case.expected(language)
    with Receiver() as receiver, Run(case.app(language), receiver, tmp_path / "checkpoint") as run:
        run.ready().send(framed(case.messages()))
        run.wait_while_alive(
            lambda: len(case.lines(receiver.data())) >= len(expected), lambda: f"{len(expected)} lines of {name}"
        )
        run.wait_for("dead_letters", int(str(case.setting("dead_letters"))))
        assert run.stop() == 0, run.said()
        assert case.arranged(case.lines(receiver.data())) == case.arranged(expected)
        assert run.last("dead_letters") == case.setting("dead_letters")
        assert run.last("messages_in") == len(case.messages())
