"""Each case in each of its languages through the engine in this process: the expected output and dead letters."""

import struct
from datetime import timedelta

import pytest

from support.case import PROGRAMS, Case, payloads
from wallaroo import KafkaRecord
from wallaroo.experimental.stream import TIME
from wallaroo.testing import Message, Record, Run, run

LATER = timedelta(hours=1)  # after which all windows are over


def messages(case: Case) -> list[list[object]]:
    """Return the input of each source, as it takes it."""
    if case.setting("runner") == "connector":
        numbers = (case.folder / "input.txt").read_text("ascii").split()
        return [[TIME.pack(0) + struct.pack(">f", float(number)) for number in numbers]]
    if case.setting("input", [{}])[0].get("kind") == "keyed":
        pairs = [line.split(" ", 1) for line in (case.folder / "input.txt").read_text("utf-8").splitlines()]
        return [[Message(value.encode(), key.encode()) for key, value in pairs]]
    return [list(inputs) for inputs in case.inputs()]


def lines(case: Case, outputs: list[Record]) -> list[str]:
    """Return what a sink got as the case's lines."""
    values = [output.value or b"" for output in outputs]
    if case.setting("runner", "tcp") == "tcp":
        return case.lines(b"".join(values))
    if case.setting("runner") == "connector":
        return payloads(b"".join(values))
    if case.setting("output") == "records":
        return [
            f"{'-' if each.partition is None else each.partition} {(each.key or b'-').decode()} {value.decode()}"
            for each, value in zip(outputs, values, strict=True)
        ]
    return [value.decode() for value in values]


def records(app: Run, case: Case) -> None:
    """Write the records of a case's input to their topics, and run its visits; an empty line ends a micro-batch."""
    for block in (case.folder / "input.txt").read_text("utf-8").split("\n\n"):
        lines = [line.split(" ") for line in block.splitlines()]
        if lines[0][0] == "visit":
            app.visit(lines[0][1], lines[0][2].encode())
            continue
        app.produce(map(record_of, lines))


def record_of(words: list[str]) -> KafkaRecord:
    """Return the record of `TOPIC KEY VALUE`; words with = after the first one of the value are headers."""
    topic, key, *value = words
    text = " ".join(word for word in value if "=" not in word)
    headers = tuple((name, said.encode()) for name, _, said in (word.partition("=") for word in value) if said)
    return KafkaRecord(topic, key.encode(), None if text == "-" else text.encode(), headers)


def topic_lines(case: Case, app: Run) -> list[str]:
    """Return the records of a case's topics as lines."""
    found = [record for topic in case.setting("topics") for record in app.topic(topic)]
    return [f"{each.topic} {(each.key or b'').decode()} {(each.value or b'-').decode()}" for each in found]


def processed(case: Case, language: str) -> Run:
    with run(str(case.app(language)), case.arguments()) as app:
        if case.setting("runner") == "goka":
            records(app, case)
            return app
        for number, inputs in enumerate(messages(case)):
            app.send(inputs, str(number))
        if not case.setting("input") and case.setting("runner", "tcp") == "tcp":
            app.generate()
        app.advance(LATER)
    return app


def starts_processes(name: str, language: str) -> bool:
    return language == "go" or name.startswith("mixed_")


@pytest.mark.parametrize(
    ("name", "language"),
    [pytest.param(*each, marks=pytest.mark.slow if starts_processes(*each) else ()) for each in PROGRAMS],
)
def test_case_gives_the_expected_output(name: str, language: str) -> None:
    case = Case(name)
    app = processed(case, language)
    found = topic_lines(case, app) if case.setting("runner") == "goka" else lines(case, app.records())
    assert case.arranged(found) == case.arranged(case.expected(language))
    assert len(app.dead_letters) == case.setting("dead_letters")
