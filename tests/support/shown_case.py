"""A run of a case."""

from pathlib import Path

from support.case import Case
from support.run import Receiver, Run, finish, framed


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
