"""Each case in each of its languages through the engine in this process: the expected output and dead letters."""

import struct
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.case import NAMES, PROGRAMS, Case, payloads
from support.memory_query import query_of
from wallaroo import KafkaRecord
from wallaroo.experimental.stream import TIME
from wallaroo.testing import Message, Record, Run, run
from wallaroo_runtime.case.topics import feed_records, topic_lines

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


def processed(case: Case, language: str) -> Run:
    with run(str(case.program(language)), case.arguments()) as app:
        if case.has_records:
            feed_records(case, app._engine)
            return app
        for number, inputs in enumerate(messages(case)):
            app.send(inputs, str(number))
        if not case.setting("input") and case.setting("runner", "tcp") == "tcp":
            app.generate()
        app.advance(LATER)
    return app


def starts_processes(name: str, language: str) -> bool:
    return language == "go" or Case(name).is_mixed


# What the feature table names, as tests of their own: a row's proof is one test.
NAMED = [("goka_clicks", "python"), ("goka_messaging", "python"), ("goka_sum", "python"), ("goka_sum", "go")]


@pytest.mark.parametrize(
    ("name", "language"),
    [
        pytest.param(*each, marks=pytest.mark.slow if starts_processes(*each) else ())
        for each in PROGRAMS
        if each not in NAMED
    ],
)
def test_case_gives_the_expected_output(name: str, language: str) -> None:
    case = Case(name)
    app = processed(case, language)
    found = topic_lines(case, app._engine) if case.has_records else lines(case, app.records())
    assert case.arranged(found) == case.arranged(case.expected(language))
    assert len(app.dead_letters) == case.setting("dead_letters")


GROUPS = {name: Case(name) for name in NAMES if Case(name).has_records}


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["python", "go"])
@pytest.mark.parametrize("reader", ["python", "go"])
def test_a_group_joins_a_table_that_another_language_wrote(writer: str, reader: str) -> None:
    case = GROUPS["goka_clicks"]
    with run(str(case.program(writer)), case.arguments()) as app:
        app.produce(KafkaRecord("user-clicks", key, b"x") for key in [b"Ann", b"Bob", b"Ann"])
        table = app.topic("click-counts-table")
    assert len(table) == 3
    with run(str(case.program(reader)), case.arguments()) as app:
        app.produce(table)
        app.produce(KafkaRecord("purchases", key, b"hat") for key in [b"Ann", b"Bob", b"Cid"])
        reports = {record.key: record.value for record in app.topic("reports")}
    clicks = {b"Ann": b"2", b"Bob": b"1", b"Cid": b"None"}
    assert reports == {key: b"hat after %s clicks" % count for key, count in clicks.items()}


CURRENCIES = ("EUR", "USD", "GBP")
Steps = list[list[KafkaRecord] | int]  # records of a micro-batch, or a visit


def numbers(least: int, most: int) -> st.SearchStrategy[bytes | None]:
    return st.none() | st.integers(least, most).map(lambda number: b"%d" % number)


currencies = st.sampled_from(CURRENCIES).map(str.encode)
rates = st.builds(KafkaRecord, st.just("rates"), currencies, numbers(1, 9))
amounts = st.builds(
    KafkaRecord,
    st.sampled_from(["deposits", "payments"]),
    st.sampled_from(["Ann", "", "né"]).map(str.encode),
    numbers(-1000, 1000),
    st.just(()) | currencies.map(lambda each: (("currency", each),)),
)
drawn_steps = st.lists(st.lists(rates | amounts, min_size=1, max_size=8) | st.integers(-500, 500), max_size=12)


def summed(steps: Steps) -> list[tuple[str, bytes, bytes | None]]:
    """Return topic, key and value of what the case `goka_sum` writes."""
    known, sums, written = dict[bytes, int](), dict[bytes, int](), list[tuple[str, bytes, int | None]]()
    for step in steps:
        if isinstance(step, int):
            for key in [key for key, value in sums.items() if value < step]:
                written += [("forgotten", key, sums.pop(key)), ("sums-table", key, None)]
            continue
        for each in step:  # a lookup knows all that was written before the micro-batch runs
            if each.topic == "rates":
                known.pop(each.key or b"", None)
                known |= {each.key or b"": int(each.value)} if each.value is not None else {}
        for each in step:
            key = each.key or b""
            if each.topic != "rates" and each.value is not None:
                sums[key] = sums.get(key, 0) + known.get(dict(each.headers).get("currency") or b"EUR", 1) * int(
                    each.value
                )
                written.append(("sums-table", key, sums[key]))
            elif each.topic != "rates":
                sums.pop(key, None)
                written.append(("sums-table", key, None))
    return [(topic, key, None if value is None else b"%d" % value) for topic, key, value in written]


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(steps=drawn_steps)
def test_both_languages_sum_drawn_records(steps: Steps) -> None:
    case = GROUPS["goka_sum"]
    for language in case.languages:
        with run(str(case.program(language)), case.arguments()) as app:
            for step in steps:
                app.visit("forget", b"%d" % step) if isinstance(step, int) else app.produce(step)
            assert not app.dead_letters
            records = [record for topic in ("forgotten", "sums-table") for record in app.topic(topic)]
            table = {(each.key or b"").decode(): each.value for each in app.topic("sums-table")}
            values = {key: state.value for key, state in app.states("sums").items() if state.value is not None}
            assert values == {key: value for key, value in table.items() if value is not None}, language
        found = sorted(((each.topic, each.key or b"", each.value) for each in records), key=lambda line: line[:2])
        assert found == sorted(summed(steps), key=lambda line: line[:2]), language  # each key's order stays


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(amounts=st.dictionaries(st.sampled_from(["Ann", "né", "x y"]), st.integers(-1000, 1000), min_size=1))
def test_people_see_states_of_groups_as_their_codecs_read_them(amounts: dict[str, int]) -> None:
    case = GROUPS["goka_sum"]
    for language in case.languages:
        with run(str(case.program(language)), case.arguments()) as app:
            app.produce(KafkaRecord("deposits", key.encode(), b"%d" % amount) for key, amount in amounts.items())
            _, rows = query_of(app._engine).page("sums")
            found = {row["key"]: row["value"] for row in rows}
        assert found == {key: {"value": amount, "joined": {}} for key, amount in amounts.items()}, language


def test_a_group_joins_the_table_of_another() -> None:
    test_case_gives_the_expected_output(*NAMED[0])


def test_a_group_sends_messages_to_itself() -> None:
    test_case_gives_the_expected_output(*NAMED[1])


def test_a_group_looks_up_a_table_and_takes_visits() -> None:
    test_case_gives_the_expected_output(*NAMED[2])


@pytest.mark.slow
def test_a_group_in_go_looks_up_a_table_and_takes_visits() -> None:
    test_case_gives_the_expected_output(*NAMED[3])
