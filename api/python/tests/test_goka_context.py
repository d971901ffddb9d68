"""Contexts: what callbacks see and write, and Goka's words for what it refuses."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from wallaroo import KafkaRecord, goka, testing
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.goka.computation import GroupComputation
from wallaroo.goka.graph import GroupGraph
from wallaroo.goka.join import JoinDecoder
from wallaroo.message import deferred_commit
from wallaroo.message.kafka_record import MAX_RECORD_BYTES, too_large

STRING, INT64 = goka.String(), goka.Int64()
RECORD = KafkaRecord("in", b"Ann", b"text", (("h", b"1"), ("n", None), ("h", b"2")), 1500, 3, 17)
Callback = Callable[[Any, Any], object]


def graph(callback: Callback, *more: goka.Edge, **options: Any) -> GroupGraph:
    edges = goka.input("in", STRING, callback), goka.persist(INT64), goka.output("out", INT64), *more
    return goka.define_group("g", *edges, **options)


def run(
    callback: Callback, *more: goka.Edge, record: KafkaRecord = RECORD, state: Any = None, **options: Any
) -> list[KafkaRecord]:
    """Run a callback; returns what it wrote."""
    computation = GroupComputation(graph(callback, *more, **options), None)
    outputs, _ = computation.with_state(record, goka.GroupState() if state is None else state)
    assert all(output.name == output.value.topic for output in outputs)
    return [output.value for output in outputs]


def seen(look: Callable[[goka.Context], object], **more: Any) -> object:
    """Return what a callback sees."""
    found = []
    run(lambda ctx, message: found.append(look(ctx)), **more)
    return found[0]


def test_a_context_shows_its_message() -> None:
    def look(ctx: goka.Context) -> object:
        return ctx.topic, ctx.key, ctx.group, ctx.partition, ctx.offset, ctx.headers, ctx.timestamp

    at = datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=timezone.utc)
    assert seen(look) == ("in", "Ann", "g", 3, 17, {"h": b"2", "n": None}, at)
    bare = KafkaRecord("in", None, b"")
    assert seen(look, record=bare) == ("in", "", "g", 0, 0, {}, None)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(time_ms=some.one_of(some.integers(-(1 << 63), (1 << 63) - 1), some.sampled_from((0, -1, 253_402_300_800_000))))
def test_records_of_any_time_are_processed(time_ms: int) -> None:
    at = seen(lambda ctx: ctx.timestamp, record=replace(RECORD, timestamp_ms=time_ms))
    assert at is None if time_ms in (0, -1) else isinstance(at, datetime)
    joined = graph(lambda ctx, message: None, goka.join("users-table", STRING))
    record = JoinDecoder().decode(KafkaRecord("users-table", b"Ann", b"x", timestamp_ms=time_ms))
    state = goka.GroupState()
    assert GroupComputation(joined, None).with_state(record, state) == ([], True)
    assert state.joined == {"users-table": b"x"}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(
    "use",
    [
        lambda ctx: ctx.value(),
        lambda ctx: ctx.set_value(1),
        lambda ctx: ctx.delete(),
        lambda ctx: ctx.join("users-table"),
        lambda ctx: ctx.emit("out", "Ann", 1),
        lambda ctx: ctx.defer_commit(),
    ],
)
def test_a_context_is_closed_after_its_callback(use: Callable[[goka.Context], object], *, fails: bool) -> None:
    kept: list[goka.Context] = []

    def keep(ctx: goka.Context, message: object) -> None:
        kept.append(ctx)
        if fails:
            ctx.fail("no")

    state = goka.GroupState(b"7")
    with contextlib.suppress(goka.CallbackError):
        run(keep, goka.join("users-table", STRING), state=state)
    with pytest.raises(goka.CallbackError, match="the callback has returned; its context is no longer valid"):
        use(kept[0])
    assert (state.value, deferred_commit.count()) == (b"7", 0)


def test_a_callback_reads_its_own_writes() -> None:
    def count(ctx: goka.Context, message: object) -> None:
        assert ctx.value() is None
        ctx.set_value(41, headers={"a": b"1"})
        ctx.set_value(ctx.value() + 1)
        ctx.delete(headers={"b": b"2"})
        assert ctx.value() is None

    assert run(count, default_headers={"d": b"0"}) == [
        KafkaRecord("g-table", b"Ann", b"41", (("a", b"1"),)),
        KafkaRecord("g-table", b"Ann", b"42"),
        KafkaRecord("g-table", b"Ann", None, (("b", b"2"),)),
    ]


def test_emits_and_loopbacks_have_default_headers_and_any_key() -> None:
    def emit(ctx: goka.Context, message: object) -> None:
        ctx.emit("out", "Bob", 7, headers={"d": b"1"})
        ctx.emit("out", "\udcff", None)
        ctx.loopback("Cid", "hi", headers={"e": b"2"})

    assert run(emit, goka.loop(STRING, emit), default_headers={"d": b"0"}) == [
        KafkaRecord("out", b"Bob", b"7", (("d", b"1"),)),
        KafkaRecord("out", b"\xff", None, (("d", b"0"),)),
        KafkaRecord("g-loop", b"Cid", b"hi", (("d", b"0"), ("e", b"2"))),
    ]


NO_INT64 = "Int64: value to encode is not of type int64"
HINT = "Did you specify goka.Output(..) when defining the processor?"


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda ctx: ctx.set_value(None), "cannot set nil as value"),
        (lambda ctx: ctx.set_value("x"), f"error encoding value: {NO_INT64}"),
        (lambda ctx: ctx.emit("", "k", 1), "cannot emit to empty topic"),
        (lambda ctx: ctx.emit("g-loop", "k", 1), "cannot emit to loop topic (use Loopback instead)"),
        (lambda ctx: ctx.emit("g-table", "k", 1), "cannot emit to table topic (use SetValue instead)"),
        (lambda ctx: ctx.emit("in", "k", 1), f"topic in is not configured for output. {HINT}"),
        (lambda ctx: ctx.emit("out", "k", "x"), f"error encoding message for topic out: {NO_INT64}"),
        (lambda ctx: ctx.emit("out", 7, 1), "key 7 is not a str"),
        (lambda ctx: ctx.loopback("k", "x"), "no loop topic configured"),
        (lambda ctx: ctx.join("users-table"), "table users-table not subscribed"),
        (lambda ctx: ctx.lookup("users-table", "k"), "topic users-table not subscribed"),
        (lambda ctx: ctx.fail("no more"), "no more"),
        (lambda ctx: ctx.fail(ValueError("bad")), "bad"),
    ],
)  # fmt: skip
def test_a_wrong_use_fails_in_goka_s_words(use: Callable[[goka.Context], object], text: str) -> None:
    with pytest.raises(goka.CallbackError) as caught:
        run(lambda ctx, message: use(ctx))
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("use", "topic", "key"),
    [
        (lambda ctx, text: ctx.set_value(text), "g-table", "Ann"),
        (lambda ctx, text: ctx.emit("texts", "Bob", text), "texts", "Bob"),
        (lambda ctx, text: ctx.loopback("Cid", text), "g-loop", "Cid"),
    ],
)
@pytest.mark.parametrize("limit", [500, MAX_RECORD_BYTES])
def test_a_record_that_kafka_never_takes_fails_its_message(
    use: Callable[[goka.Context, str], object], topic: str, key: str, limit: int
) -> None:
    size = next(size for size in range(limit, 0, -1) if not too_large(limit, key.encode(), bytes(size)))
    texts = ["x" * size, "x" * (size + 1)]
    edges = (
        goka.input("in", STRING, lambda ctx, message: use(ctx, texts[0])),
        *(goka.persist(STRING), goka.output("texts", STRING), goka.loop(STRING, lambda ctx, message: None)),
    )
    computation = GroupComputation(goka.define_group("g", *edges), None, limit)
    outputs, _ = computation.with_state(RECORD, goka.GroupState())
    assert [output.value.topic for output in outputs] == [topic]
    texts.pop(0)
    with pytest.raises(goka.CallbackError) as caught:
        computation.with_state(RECORD, goka.GroupState())
    assert str(caught.value) == (
        f"the record of key {key} for topic {topic} has {limit + 1} bytes; at most {limit} are possible; split its "
        "value, or raise kafka.max.request.size in the application's options and max.message.bytes of the topic"
    )


def test_an_option_of_the_application_says_how_large_records_may_be() -> None:
    def write(ctx: goka.Context, message: str) -> None:
        ctx.set_value("x" * 200)

    def application_setup(args: Sequence[str]) -> Any:
        graph = goka.define_group("g", goka.input("in", STRING, write), goka.persist(STRING))
        options = {"kafka.max.request.size": "250"} if args[1:] else {}
        return goka.application(["127.0.0.1:9092"], graph, options=options, on_error="dead_letter")

    for args, letters in (((), 0), (("small",), 1)):
        with testing.run(application_setup, args=args) as app:
            app.produce([KafkaRecord("in", b"k", b"x")])
            assert len(app.dead_letters) == letters and len(app.topic("g-table")) == 1 - letters


def test_a_loop_s_codec_gets_none() -> None:
    with pytest.raises(goka.CodecError) as caught:
        run(lambda ctx, message: ctx.loopback("k", None), goka.loop(STRING, lambda ctx, message: None))
    text = "error encoding message for key k: String: value to encode is not of type string but NoneType"
    assert str(caught.value) == text


def test_a_group_without_a_table_has_no_value() -> None:
    def use(ctx: goka.Context, message: object) -> None:
        ctx.value()

    stateless = goka.define_group("g", goka.input("in", STRING, use))
    with pytest.raises(goka.CallbackError, match="Cannot access state in stateless processor"):
        GroupComputation(stateless, None).without_state(RECORD)


def test_a_failure_that_the_callback_catches_is_one() -> None:
    def swallow(ctx: goka.Context, message: object) -> None:
        try:
            ctx.fail("no more")
        except Exception:
            ctx.set_value(1)

    with pytest.raises(goka.CallbackError, match="no more"):
        run(swallow)


def test_a_context_ends_with_its_callback() -> None:
    kept: list[goka.Context] = []
    run(lambda ctx, message: kept.append(ctx), goka.loop(STRING, lambda ctx, message: None))
    for use in (lambda ctx: ctx.set_value(1), lambda ctx: ctx.emit("out", "k", 1), lambda ctx: ctx.loopback("k", "x")):
        with pytest.raises(goka.CallbackError, match="the callback has returned; its context is no longer valid"):
            use(kept[0])


@pytest.mark.parametrize(("mode", "expected"), [("ignore", []), ("process", [None]), ("decode", [""])])
def test_messages_without_a_value(mode: str, expected: list[object]) -> None:
    found: list[object] = []
    assert run(lambda ctx, m: found.append(m), record=KafkaRecord("in", b"k"), nil_handling=mode) == []
    assert found == expected


def test_a_message_that_the_codec_cannot_read() -> None:
    edges = goka.input("in", INT64, lambda ctx, message: None), goka.persist(INT64)
    with pytest.raises(goka.CodecError) as caught:
        GroupComputation(goka.define_group("g", *edges), None).with_state(RECORD, goka.GroupState())
    text = 'Error parsing data from string 0: strconv.ParseInt: parsing "text": invalid syntax'
    assert str(caught.value) == f"error decoding message for key Ann from in/3: {text}"


def test_a_value_that_the_codec_cannot_read() -> None:
    with pytest.raises(goka.CodecError, match="error decoding value: Error parsing data"):
        run(lambda ctx, message: ctx.value(), state=goka.GroupState(b"x"))


def test_a_codec_that_returns_no_bytes() -> None:
    class Text(goka.String):
        def encode(self, value: Any) -> Any:
            return value

    edges = goka.input("in", STRING, lambda ctx, message: ctx.set_value("x")), goka.persist(Text())
    with pytest.raises(goka.CodecError, match=r"error encoding value: Text\.encode returned str, not bytes"):
        GroupComputation(goka.define_group("g", *edges), None).with_state(RECORD, goka.GroupState())


def test_callbacks_get_what_the_wrapper_makes() -> None:
    class Wrapped:
        def __init__(self, ctx: goka.Context) -> None:
            self.ctx = ctx

        def add(self, number: int) -> None:
            self.ctx.set_value((self.ctx.value() or 0) + number)

    assert run(lambda ctx, m: ctx.add(5), context_wrapper=Wrapped) == [KafkaRecord("g-table", b"Ann", b"5")]


def joined(state: goka.GroupState, value: bytes | None, **options: Any) -> bool:
    computation = GroupComputation(graph(lambda ctx, m: None, goka.join("users-table", STRING), **options), None)
    record = JoinDecoder().decode(KafkaRecord("users-table", b"Ann", value, (("h", b"1"),), 1500, 2, 9))
    outputs, is_changed = computation.with_state(record, state)
    assert outputs == []
    return is_changed


def test_a_joined_table_is_read_under_the_message_s_key() -> None:
    state = goka.GroupState()
    look: Callback = lambda ctx, message: found.append(ctx.join("users-table"))  # noqa: E731
    for value, expected, is_changed in ((b"Ann A.", "Ann A.", True), (b"Ann A.", "Ann A.", False), (None, None, True)):
        found: list[object] = []
        assert joined(state, value) is is_changed
        run(look, goka.join("users-table", STRING), state=state)
        assert found == [expected]
    assert joined(state, None) is False and state == goka.GroupState()


def test_an_update_callback_decides_what_a_join_keeps() -> None:
    def update(at: goka.Update, storage: goka.Storage, key: str, value: bytes | None) -> None:
        assert (at.topic, at.partition, at.offset, at.headers, key) == ("users-table", 2, 9, {"h": b"1"}, "Ann")
        storage.set(key, (storage.get(key) or b"") + (value or b"-"))

    state = goka.GroupState(b"7")
    assert joined(state, b"a", update_callback=update) and joined(state, None, update_callback=update)
    assert state == goka.GroupState(b"7", {"users-table": b"a-"})


def test_a_join_s_storage_has_the_record_s_key_alone() -> None:
    def update(at: goka.Update, storage: goka.Storage, key: str, value: bytes | None) -> None:
        storage.set("Bob", b"x")

    with pytest.raises(goka.CallbackError, match="key 'Bob' in the update of 'Ann'"):
        joined(goka.GroupState(), b"a", update_callback=update)


@pytest.fixture
def settled() -> Iterator[None]:
    """Leave nothing for other tests to wait for."""
    yield
    deferred_commit.forget(0)


@pytest.mark.usefixtures("settled")
def test_a_deferred_commit_is_waited_for() -> None:
    done: list[Callable[..., None]] = []
    run(lambda ctx, message: done.append(ctx.defer_commit()))
    waiter = threading.Thread(target=deferred_commit.settle)
    waiter.start()
    assert waiter.is_alive()
    done[0]()
    waiter.join(60)
    assert not waiter.is_alive()


@pytest.mark.usefixtures("settled")
def test_a_deferred_commit_with_an_error_is_refused_once() -> None:
    done: list[Callable[..., None]] = []
    run(lambda ctx, message: done.append(ctx.defer_commit()))
    done[0](ValueError("no disk"))
    done[0]()
    with pytest.raises(DiagnosticError) as caught:
        deferred_commit.settle()
    assert str(caught.value).splitlines()[0] == "C528 could not commit message with key 'Ann': no disk"
    deferred_commit.settle()


@pytest.mark.usefixtures("settled")
def test_nobody_waits_for_a_message_that_failed() -> None:
    def begin_and_fail(ctx: goka.Context, message: object) -> None:
        ctx.defer_commit()
        ctx.fail("no")

    with pytest.raises(goka.CallbackError):
        run(begin_and_fail)
    deferred_commit.settle()
