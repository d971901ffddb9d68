"""Drawn groups on the engine in memory, against a sequential reference of Goka: topics, tables and dead letters."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.goka import Group, Record, World
from wallaroo import KafkaRecord, goka
from wallaroo.component.application import Application
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.message.key import bucket_of, key_bytes
from wallaroo.testing import Run, run
from wallaroo_runtime.memory.start import BUCKETS

KEYS = ("", "a", "b", "\udcff")
RAW = (None, b"", b"a", b"b", b"\xff")
TOPICS = ("a", "b", "x0", "x1")  # read by anybody; x0 and x1 are also written
GROUPS = ("g0", "g1", "g2")
TABLES = ("users-table", *(f"{name}-table" for name in GROUPS))
Actions = list[list[Any]]


class Script(goka.Json):
    """What callbacks do, as a list of actions. A message without a value is one, too."""

    def decode(self, data: bytes | None) -> Any:
        return [["see"], ["see"]] if data is None else super().decode(data)


CODECS: dict[str, goka.Codec] = {topic: Script() for topic in TOPICS}
CODECS |= {name + "-loop": Script() for name in GROUPS} | {name + "-log": goka.String() for name in GROUPS}
CODECS |= {name + "-table": goka.Int64() for name in GROUPS} | {"users-table": goka.Json()}


def perform(ctx: Any, actions: Actions | None, log: str, joins: Sequence[str]) -> None:
    """Do what a message says; `see` writes down all that a context shows."""
    for name, *rest in actions if actions is not None else [["see"]]:
        if name == "see":
            shown = [ctx.topic, ctx.key, ctx.offset, sorted(ctx.headers.items()), [ctx.join(each) for each in joins]]
            ctx.emit(log, ctx.key, repr(shown))
        elif name == "value":
            ctx.emit(log, ctx.key, repr(ctx.value()))
        elif name == "add":
            ctx.set_value((ctx.value() or 0) + rest[0])
        elif name == "set":
            ctx.set_value(rest[0])
        elif name == "delete":
            ctx.delete()
        elif name == "join":
            ctx.emit(log, ctx.key, repr(ctx.join(rest[0])))
        elif name == "lookup":
            ctx.emit(log, ctx.key, repr(ctx.lookup(rest[0], KEYS[rest[1]])))
        elif name == "emit":
            ctx.emit(rest[0], KEYS[rest[1]], rest[2], headers={"from": log.encode()} if rest[3] else None)
        elif name == "loop":
            ctx.loopback(KEYS[rest[0]], rest[1], headers={"loop": b"1"} if rest[2] else None)
        else:
            ctx.fail("as the message says")


def application(groups: Sequence[Group], **options: Any) -> Application:
    """Return the application of groups."""
    graphs = []
    for group in groups:

        def callback(ctx: goka.Context, actions: Any, *, group: Group = group) -> None:
            perform(ctx, actions, f"{group.name}-log", group.joins)

        def visited(ctx: goka.Context, metadata: bytes, *, group: Group = group) -> None:
            perform(ctx, Script().decode(metadata), f"{group.name}-log", group.joins)

        edges = [
            *goka.inputs(group.inputs, Script(), callback),
            *(goka.join(topic, CODECS[topic]) for topic in group.joins),
            *(goka.lookup(topic, CODECS[topic]) for topic in group.lookups),
            *(goka.output(topic, CODECS[topic]) for topic in group.outputs),
        ]
        edges += [goka.persist(goka.Int64()), goka.visitor(f"v-{group.name}", visited)] if group.has_table else []
        edges += [goka.loop(Script(), callback)] if group.has_loop else []
        graphs.append(
            goka.define_group(group.name, edges, nil_handling=group.nil, default_headers=group.default_headers)
        )
    return goka.application(["127.0.0.1:9092"], *graphs, **options)


def some(*names: str, least: int = 0) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), unique=True, min_size=least)


numbers = st.integers(0, len(KEYS) - 1)
simple = st.one_of(
    st.just(["see"]), st.just(["value"]), st.just(["delete"]), st.just(["see"]),
    st.tuples(st.just("add"), st.integers(-3, 3)).map(list),
    st.tuples(st.just("set"), st.integers(0, 9)).map(list),
    st.tuples(st.just("join"), st.sampled_from(TABLES)).map(list),
    st.tuples(st.just("lookup"), st.sampled_from(TABLES), numbers).map(list),
)  # fmt: skip
wrong = st.sampled_from([["fail"], ["set", None], ["emit", "nowhere", 0, [], False]])
actions: st.SearchStrategy[Actions] = st.recursive(
    st.lists(simple, max_size=3),
    lambda inner: st.lists(
        st.one_of(
            simple,
            st.tuples(st.just("emit"), st.sampled_from(("x0", "x1")), numbers, st.none() | inner, st.booleans()).map(
                list
            ),
            st.tuples(st.just("loop"), numbers, inner, st.booleans()).map(list),
            wrong,
        ),
        max_size=3,
    ),
    max_leaves=6,
)


@st.composite
def drawn_groups(draw: st.DrawFn) -> list[Group]:
    return [
        Group(
            name,
            inputs=draw(some(*TOPICS, least=1)),
            outputs=[*draw(some("x0", "x1")), f"{name}-log"],
            joins=draw(some("a", *(table for table in TABLES if table != f"{name}-table"))),
            lookups=draw(some(*(table for table in TABLES if table != f"{name}-table"))),
            has_table=draw(st.booleans()),
            has_loop=draw(st.booleans()),
            nil=draw(st.sampled_from(("ignore", "process", "decode"))),
            default_headers=draw(st.dictionaries(st.sampled_from(("from", "by")), st.binary(max_size=2))),
        )
        for name in GROUPS[: draw(st.integers(1, 3))]
    ]


headers = st.lists(st.tuples(st.sampled_from(("h", "n")), st.binary(max_size=2)), max_size=3).map(tuple)
messages = st.builds(
    Record, st.sampled_from(TOPICS), st.sampled_from(RAW),
    st.none() | st.just(b"{") | actions.map(Script().encode) | actions.map(Script().encode), headers,
)  # fmt: skip
users = st.builds(
    Record, st.just("users-table"), st.sampled_from(RAW), st.none() | st.integers(0, 9).map(lambda n: b"%d" % n)
)
visits = st.tuples(st.sampled_from(GROUPS), actions)
steps = st.lists(st.one_of(st.lists(st.one_of(messages, messages, users), min_size=1), visits), max_size=5)


def as_record(record: KafkaRecord) -> Record:
    return Record(record.topic, record.key, record.value, tuple(record.headers))  # type: ignore[arg-type]


def compare(app: Run, world: World) -> None:
    for topic in (*TOPICS, *CODECS):
        try:
            assert list(map(as_record, app.topic(topic))) == world.topics[topic], topic
        except DiagnosticError as error:
            assert str(error).startswith("R720 ") and not world.topics[topic], topic
    for group in world.groups:
        if not (group.has_table or group.joins):
            continue
        states = {key_bytes(key): state for key, state in app.states(group.name).items()}
        assert {key: state.value for key, state in states.items() if state.value is not None} == world.values[
            group.name
        ]
        expected = {
            (key, topic): value
            for topic in group.joins for key, value in world.joined[group.name, topic].items()
        }  # fmt: skip
        assert {(key, topic): data for key, s in states.items() for topic, data in s.joined.items()} == expected
        assert not any(state.is_empty for state in states.values())
    letters = Counter((letter.step, letter.error) for letter in app.dead_letters)
    assert letters == Counter((group, text) for group, _, text in world.letters)


def by_bucket(keys: Iterable[bytes]) -> list[bytes]:
    return sorted(keys, key=lambda key: (bucket_of(key, BUCKETS), key))


def visit(app: Run, world: World, name: str, said: Actions) -> None:
    """Visit a group, if there is one of this name that has a table."""
    for group in world.groups:
        if group.name == name and group.has_table:
            world.visit(f"v-{name}", group, said, by_bucket)
            app.visit(f"v-{name}", Script().encode(said))


@settings(max_examples=25, deadline=None)
@given(drawn_groups(), steps)
def test_groups_do_what_goka_does(groups: list[Group], steps: list[Any]) -> None:
    def callback(ctx: Any, message: Any) -> None:
        perform(ctx, message, f"{ctx.group_graph.name}-log", ctx.group_graph.joins)

    world = World(groups, CODECS, callback)

    def application_setup(args: Sequence[str]) -> Application:
        return application(groups, on_error="dead_letter")

    has_users = any("users-table" in (*group.joins, *group.lookups) for group in groups)  # else the name is refused
    with run(application_setup) as app:
        for step in steps:
            if isinstance(step, list):
                records = [each for each in step if has_users or each.topic != "users-table"]
                world.produce(records)
                app.produce(KafkaRecord(each.topic, each.key, each.value, each.headers) for each in records)
            else:
                visit(app, world, *step)
        compare(app, world)


def of(edges: Sequence[goka.Edge], **options: Any) -> Callable[[Sequence[str]], Application]:
    """Return the setup function of one group."""

    def application_setup(args: Sequence[str]) -> Application:
        return goka.application(["127.0.0.1:9092"], goka.define_group("g", edges), **options)

    return application_setup


def clicks(*keys: bytes) -> list[KafkaRecord]:
    return [KafkaRecord("clicks", key, b"x") for key in keys]


def test_a_failure_stops_the_application_by_default() -> None:
    def fail_on_bob(ctx: goka.Context, message: str) -> None:
        ctx.set_value(1)
        if ctx.key == "Bob":
            ctx.fail("no Bobs")

    edges = goka.input("clicks", goka.String(), fail_on_bob), goka.persist(goka.Int64())
    with run(of(edges)) as app:
        with pytest.raises(DiagnosticError) as caught:
            app.produce(clicks(b"Ann", b"Bob"))
        (finding,) = caught.value.diagnostics
        assert finding.code == "R611" and "CallbackError: no Bobs" in finding.message
        assert app.states("g") == {} and app.topic("g-table") == []
    with run(of(edges, on_error="dead_letter")) as app:
        app.produce(clicks(b"Ann", b"Bob"))
        assert list(app.states("g")) == ["Ann"] and [each.value for each in app.topic("g-table")] == [b"1"]
        assert [(letter.step, letter.error) for letter in app.dead_letters] == [("g", "CallbackError: no Bobs")]


@pytest.mark.parametrize("keeps", [True, False], ids=["state", "stateless"])
def test_a_micro_batch_waits_for_its_deferred_commits(keeps: bool) -> None:
    errors: dict[str, object] = {}

    def defer(ctx: goka.Context, message: str) -> None:
        ctx.emit("out", ctx.key, message)
        threading.Timer(0.05, ctx.defer_commit(), (errors.get(ctx.key),)).start()

    edges = [goka.input("clicks", goka.String(), defer), goka.output("out", goka.String())]
    with run(of([*edges, goka.persist(goka.Int64())] if keeps else edges)) as app:
        app.produce(clicks(b"Ann", b"Bob"))
        assert [record.key for record in app.topic("out")] == [b"Ann", b"Bob"]
        errors["Bob"] = OSError("no disk")
        with pytest.raises(DiagnosticError) as caught:
            app.produce(clicks(b"Ann", b"Bob"))
        (finding,) = caught.value.diagnostics
        assert (finding.code, finding.message) == ("C528", "could not commit message with key 'Bob': no disk")
        assert len(app.topic("out")) == 2


def test_a_group_that_writes_nothing_and_two_readers_of_a_topic() -> None:
    seen: list[str] = []

    def look(ctx: goka.Context, message: str) -> None:
        seen.append(f"{ctx.group} {ctx.key} {ctx.topic}")

    def application_setup(args: Sequence[str]) -> Application:
        edge = goka.input("clicks", goka.String(), look)
        return goka.application(["127.0.0.1:9092"], *(goka.define_group(name, edge) for name in ("g", "h")))

    with run(application_setup) as app:
        app.produce(clicks(b"Ann", b"Bob"))
        assert sorted(seen) == ["g Ann clicks", "g Bob clicks", "h Ann clicks", "h Bob clicks"]
        app.send(clicks(b"Cid"), "input clicks of h")
        assert seen[4:] == ["h Cid clicks"]


def test_names_of_sources_and_sinks_are_topics() -> None:
    """As in Go: TestNamesAreThoseOfPython has the same groups."""

    def none(ctx: goka.Context, message: Any) -> None:
        pass

    text = goka.String()
    edges = goka.input("in", text, none), goka.loop(text, none), goka.output("x", text), goka.persist(text)
    first = goka.define_group("a", *edges, goka.join("users", text))
    tables = goka.join("a-table", text), goka.join("users", text)
    second = goka.define_group("b", *goka.inputs(["in", "x"], text, none), *tables)
    app = goka.application(["127.0.0.1:9092"], first, second)
    names = sorted(node.name for line in app.pipelines for node in (*line.sources, *line.sinks))
    assert app.name == "a + b"
    assert names == [
        "a-loop", "a-loop", "a-table", "a-table", "b", "in", "input in of b", "join users of b", "users", "x", "x",
    ]  # fmt: skip


def test_a_key_without_a_value_leaves_the_log() -> None:
    def keep(ctx: goka.Context, message: str) -> None:
        ctx.delete() if ctx.value() else ctx.set_value(1)

    edges = (
        goka.input("clicks", goka.String(), keep),
        goka.persist(goka.Int64()),
        goka.join("users-table", goka.String()),
    )
    user = KafkaRecord("users-table", b"Ann", b"A")
    with run(of(edges)) as app:
        app.produce([*clicks(b"Ann", b"Ann", b"Bob", b"Cid"), user])
        app.produce(clicks(b"Bob"))
        assert app.states("g") == {"Ann": goka.GroupState(None, {"users-table": b"A"}), "Cid": goka.GroupState(b"1")}
        app.produce([replace(user, value=None), *clicks(b"Bob")])
        assert app.states("g") == {"Bob": goka.GroupState(b"1"), "Cid": goka.GroupState(b"1")}
