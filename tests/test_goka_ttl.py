"""Groups whose table has a time to live, on the engine in memory: drawn histories against a plain reference."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wallaroo import KafkaRecord, goka
from wallaroo.component.application import Application
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.testing import run

TTL_MS, NEVER = 1000, -(10**18)
BROKERS = ["127.0.0.1:9092"]
KEYS = "", "a"
Message = tuple[str, str, str | None, int]  # topic, key, value, and how much older it is than the latest time


@dataclass
class Key:
    """What the reference knows of a key: `silent` is the first tick after its last message."""

    value: int | None = None
    joined: str | None = None
    time: int = NEVER
    silent: int | None = None
    records: list[int | None] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)

    def set(self, value: int | None) -> None:
        self.value = value
        self.records.append(value)

    def message(self, op: str, at: int) -> None:
        if self.value is not None and self.time + TTL_MS <= at:
            self.set(None)
        if self.value is None:
            self.time = NEVER
        if op == "fail":
            return
        self.seen.append([self.value, self.joined])
        if op == "add":
            self.set((self.value or 0) + 1)
        elif op == "delete":
            self.set(None)
        self.time, self.silent = max(self.time, at), None


class Reference:
    """All keys are looked at in each step."""

    def __init__(self) -> None:
        self.keys, self.clock = defaultdict[str, Key](Key), 0

    def produce(self, batch: Sequence[Message], at: int) -> None:
        for topic, key, value, _ in batch:
            if topic == "users":
                self.keys[key].joined = value
        for topic, key, value, age in batch:
            if topic == "in" and value is not None:
                self.keys[key].message(value, at - age)

    def advance(self, ms: int) -> None:
        for each in self.keys.values():
            each.silent = self.clock if each.silent is None else each.silent
        self.clock += ms
        for each in self.keys.values():
            if each.value is not None and each.silent is not None and self.clock - each.silent >= TTL_MS:
                each.set(None)

    def visit(self) -> None:
        for each in self.keys.values():
            if each.value is not None:
                each.set(None)


def perform(ctx: goka.Context, op: str) -> None:
    ctx.emit("seen", ctx.key, [ctx.value(), ctx.join("users")])
    if op == "add":
        ctx.set_value((ctx.value() or 0) + 1)
    elif op == "delete":
        ctx.delete()
    elif op == "fail":
        ctx.set_value(100)
        ctx.fail("as the message says")


def application_setup(args: Sequence[str]) -> Application:
    first = goka.define_group(
        "g",
        goka.input("in", goka.String(), perform),
        goka.join("users", goka.String()),
        goka.output("seen", goka.Json()),
        goka.persist(goka.Int64(), ttl=timedelta(milliseconds=TTL_MS)),
        goka.visitor("clear", lambda ctx, metadata: ctx.delete()),
    )
    reader = goka.define_group(
        "reader",
        goka.input("other", goka.String(), lambda ctx, message: None),
        goka.join(goka.group_table("g"), goka.Int64()),
    )
    return goka.application(BROKERS, first, reader, on_error="dead_letter")


keys = st.sampled_from(KEYS)
ops = st.sampled_from(("add", "add", "delete", "see", "fail"))
batches = st.lists(
    st.one_of(
        st.tuples(st.just("in"), keys, ops, st.sampled_from((0, 0, 1, 700, 1400))),
        st.tuples(
            st.just("users"), keys, st.sampled_from(("A", "B", None)), st.just(-5000)
        ),  # its time does not matter
    ),
    min_size=1,
    max_size=6,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from((0, 1, 200, 999, 1000)), batches),
        st.tuples(st.sampled_from((0, 1, 200, 999, 1000)), batches),
        st.sampled_from((0, 1, 400, 999, 1000, 1500)),
        st.just("clear"),
    ),
    min_size=15,
    max_size=30,
)


def records(batch: Sequence[Message], at: int) -> list[KafkaRecord]:
    """Return the records of messages."""
    return [
        KafkaRecord(topic, key.encode(), None if value is None else value.encode(), timestamp_ms=at - age)
        for topic, key, value, age in batch
    ]


CLEARED = [  # a visit deletes a value; then a message that is older than the key's time begins the next value
    (0, [("users", "a", "A", 0), ("in", "a", "add", 0)]),
    "clear",
    (0, [("in", "a", "add", 1400)]),
    (1, [("in", "a", "see", 0)]),
]


@example(CLEARED, 1 << 20)
@given(steps, st.sampled_from((0, 1 << 20)))
def test_values_end_as_in_the_reference(steps: Sequence[Any], cache_bytes: int) -> None:
    reference, at = Reference(), 1_000_000  # the time of the data is not that of the clock
    with patch("wallaroo_runtime.memory.start.CACHE_BYTES", cache_bytes), run(application_setup) as app:
        for step in steps:
            if step == "clear":
                reference.visit()
                app.visit("clear")
            elif isinstance(step, int):
                reference.advance(step)
                app.advance(step / 1000)
            else:
                at += step[0]
                reference.produce(step[1], at)
                app.produce(records(step[1], at))
        app.produce(KafkaRecord("other", b"", b""))  # the reader of the table has its last records
        for key in KEYS:
            raw, known = key.encode(), reference.keys[key]
            table = [record.value for record in app.topic("g-table") if record.key == raw]
            assert table == [None if value is None else b"%d" % value for value in known.records]
            assert [goka.Json().decode(each.value) for each in app.topic("seen") if each.key == raw] == known.seen
            state = app.state("g", key) or goka.GroupState()
            assert (state.value is None, state.joined.get("users")) == (
                known.value is None,
                known.joined and known.joined.encode(),
            )
            joined = app.state("reader", key) or goka.GroupState()
            assert joined.joined.get("g-table") == state.value
        assert len(app.states("g")) == sum(
            each.value is not None or each.joined is not None for each in reference.keys.values()
        )


def test_the_loop_prolongs_a_life() -> None:
    def start(ctx: goka.Context, message: str) -> None:
        ctx.set_value(1)
        ctx.loopback(message, "go on")

    def setup(args: Sequence[str]) -> Application:
        edges = goka.input("in", goka.String(), start), goka.loop(goka.String(), lambda ctx, message: None)
        return goka.application(
            BROKERS, goka.define_group("g", *edges, goka.persist(goka.Int64(), ttl=timedelta(seconds=1)))
        )

    with run(setup) as app:
        app.produce(KafkaRecord("in", b"a", b"a"))
        app.produce(KafkaRecord("in", b"b", b"b"))
        app.advance(0.8)
        app.produce(KafkaRecord("in", b"c", b"a"))
        app.advance(0.8)
        assert sorted(app.states("g")) == ["a", "c"]
        app.advance(0.8)
        assert not app.states("g")


def test_an_end_that_fails_is_one_dead_letter() -> None:
    with run(application_setup) as app:
        app.produce([KafkaRecord("in", b"a", b"add"), KafkaRecord("in", b"b", b"see")])
        with patch("wallaroo.goka.context.Context.delete", side_effect=OSError("no memory")):
            app.advance(1)
            app.advance(5)
        (letter,) = app.dead_letters
        assert (letter.step, letter.key, letter.error) == ("g", "a", "OSError: no memory")
        assert app.states("g") == {"a": goka.GroupState(b"1")}
        app.produce(KafkaRecord("in", b"a", b"see"))
        app.advance(1)
        assert not app.states("g") and [record.value for record in app.topic("g-table")] == [b"1", None]


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(-1), 3600, timedelta(days=40_000)])
def test_a_ttl_that_cannot_be(ttl: Any) -> None:
    edges = goka.input("in", goka.String(), perform), goka.persist(goka.Int64(), ttl=ttl)
    with pytest.raises(WallarooParameterError) as caught:
        goka.define_group("g", *edges)
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.fix) == ("T207", "write e.g. ttl=timedelta(hours=1)")
    assert finding.message.startswith("goka.persist: parameter ttl is ") and finding.line
