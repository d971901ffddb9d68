"""Each case in each of its languages through the engine in this process: the expected output and dead letters."""

import struct

import pytest

from case import PROGRAMS, Case
from wallaroo_runtime.memory import MemoryRun, Message, Output, start

pytestmark = pytest.mark.slow

LATER_MS = 3_600_000  # after which all windows are over


def messages(case: Case) -> list[list[object]]:
    """Return the input of each source, as it takes it."""
    if case.setting("runner") == "connector":
        numbers = (case.folder / "input.txt").read_text("ascii").split()
        return [[struct.pack(">f", float(number)) for number in numbers]]
    if case.setting("input", [{}])[0].get("kind") == "keyed":
        pairs = [line.split(" ", 1) for line in (case.folder / "input.txt").read_text("utf-8").splitlines()]
        return [[Message(value.encode(), key.encode()) for key, value in pairs]]
    return [list(payloads) for payloads in case.inputs()]


def lines(case: Case, outputs: list[Output]) -> list[str]:
    """Return what a sink got as the case's lines."""
    values = [output.value or b"" for output in outputs]
    if case.setting("runner", "tcp") == "tcp":
        return case.lines(b"".join(values))
    if case.setting("output") == "records":
        return [
            f"{'-' if each.partition is None else each.partition} {(each.key or b'-').decode()} {value.decode()}"
            for each, value in zip(outputs, values, strict=True)
        ]
    return [value.decode() for value in values]


def processed(case: Case, language: str) -> MemoryRun:
    run = start(str(case.app(language)), case.arguments())
    try:
        for number, inputs in enumerate(messages(case)):
            run.send(inputs, str(number))
        if not case.setting("input") and case.setting("runner", "tcp") == "tcp":
            run.generate()
        run.advance(LATER_MS)
    finally:
        run.close()
    return run


@pytest.mark.parametrize(("name", "language"), PROGRAMS)
def test_case_gives_the_expected_output(name: str, language: str) -> None:
    case = Case(name)
    run = processed(case, language)
    assert case.arranged(lines(case, run.outputs())) == case.arranged(case.expected(language))
    assert len(run.letters) == case.setting("dead_letters")
