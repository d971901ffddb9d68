"""Records as lines of text: drawn ones are read back as they were, from lines, and from an input in parts."""

import os
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo import KafkaRecord
from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.case.record_input import RecordInput
from wallaroo_runtime.case.record_line import parse_record, record_line

TEXTS = st.text("ab= -\"0x\\'é€\n\t", max_size=8).map(str.encode)
DATA = TEXTS | st.binary(max_size=5) | st.sampled_from([b"", b"-", b"visit", b"0xff", b'"', b"a=b", b"a  b", b"b a=b"])
HEADERS = st.lists(st.tuples(st.sampled_from(["h", "name", "né"]), DATA), max_size=2).map(tuple)
TOPICS = st.sampled_from(["user-clicks", "my-group-table", "a.b_c"])
RECORDS = st.builds(KafkaRecord, TOPICS, st.none() | DATA, st.none() | DATA, HEADERS)


@settings(max_examples=400)
@given(RECORDS)
def test_a_record_is_read_back_from_its_line(record: KafkaRecord) -> None:
    line = record_line(record)
    assert line.isprintable()
    assert parse_record(line) == record


@given(RECORDS, st.text())
def test_names_of_headers_do_nothing_to_a_terminal(record: KafkaRecord, name: str) -> None:
    assert record_line(replace(record, headers=[(name, None)])).isprintable()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("deposits", "it has 1 of three words, as in `user-clicks Ann clicked`"),
        ("deposits Ann", "it has 2 of three words"),
        ('deposits Ann "7', "the text that begins at column 14 does not end"),
        ("deposits Ann 0x7", "non-hexadecimal number found"),
    ],
)
def test_a_line_that_is_no_record_says_why(line: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_record(line)


STEPS = st.lists(st.lists(RECORDS, min_size=1, max_size=3) | st.sampled_from(["forget 50", "show"]), max_size=5)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, cuts=st.lists(st.integers(0, 400), max_size=4), ends=st.booleans(), wrong=st.booleans())
def test_an_input_in_parts_gives_its_records_and_visits_in_order(
    steps: list[list[KafkaRecord] | str], cuts: list[int], ends: bool, wrong: bool
) -> None:
    lines = [
        line
        for step in steps
        for line in ([f"visit {step}"] if isinstance(step, str) else [*map(record_line, step), ""])
    ]
    lines += ["no-record"] * wrong
    data = "\n".join(lines).encode() + b"\n" * ends
    said: list[Diagnostic] = []
    reader, writer = os.pipe()
    found: list[KafkaRecord | str] = []
    records = RecordInput(said.append, reader)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in zip(places, places[1:], strict=False):
        os.write(writer, data[begin:end])
        _take(records, found)
    os.close(writer)
    deadline = time.monotonic() + 60
    while not records.is_over and time.monotonic() < deadline:
        _take(records, found)
    os.close(reader)
    assert records.is_over
    assert found == [each for step in steps for each in ([step] if isinstance(step, str) else step)]
    assert [str(finding).splitlines()[0] for finding in said] == [
        f"R721 line {len(lines)} of standard input cannot take 'no-record'; it has 1 of three words, as in "
        "`user-clicks Ann clicked`"
    ] * wrong


def _take(records: RecordInput, found: list[KafkaRecord | str]) -> None:
    while (step := records.take()) is not None:
        found += [step] if isinstance(step, str) else step
