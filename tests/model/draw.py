"""Draws applications; what is drawn first is what shrinks first."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import assume
from hypothesis import strategies as some

from model.application import GO, PYTHON, Application, Chunk, Settings
from model.compute import PROBE

FORMS = ("text", "number", "struct", "proto")
STATE_OPS = ("total", "fan", "tally")
TICKED = frozenset({"range", "session", "timed"})  # steps for which time passes between messages
KEYS = 8
FAULTS = ("worker.before_compute:2", "worker.after_compute:3", "worker.after_reply:1")
FIRST_MS = 1_700_000_000_000
Draw = Any


@dataclass(frozen=True)
class Stream:
    """What is known of a stream while an application is drawn.

    Attributes:
        at: Its number.
        form: Of its messages; empty: of several forms.
        sources: It derives from these.
        multi: Whether several messages may derive from one source message.
        scattered: Whether it comes out of buckets.
        determined: Whether the order of messages of one source message is promised where they meet.
        order: What is promised of the order at a sink.
        carry: Which key messages carry: "", "key" (the item's), "all" (the empty one), "mixed".
        remote: Whether the other program gives it.
        windowed: Whether windows are among the steps before it.
    """

    at: int
    form: str
    sources: frozenset[int]
    multi: bool = False
    scattered: bool = False
    determined: bool = True
    order: str = "bag"
    carry: str = ""
    remote: bool = False
    windowed: bool = False


class Drawing:
    """An application on its way."""

    def __init__(self, draw: Draw, sources: int, other: bool, has_time: bool) -> None:
        self.draw, self.other, self.has_time = draw, other, has_time
        self.sources = [{"form": draw(some.sampled_from(FORMS))} for _ in range(sources)]
        self.streams = [Stream(at, source["form"], frozenset([at])) for at, source in enumerate(self.sources)]
        self.steps: list[dict[str, Any]] = []

    def merged(self, streams: Sequence[Stream]) -> Stream:
        """Return what is known of several streams together."""
        first, *others = streams
        for each in others:
            carry = first.carry if first.carry == each.carry else "mixed" if first.carry and each.carry else ""
            first = Stream(
                first.at,
                first.form if first.form == each.form else "",
                first.sources | each.sources,
                first.multi or each.multi or bool(first.sources & each.sources),
                first.scattered or each.scattered,
                first.determined and each.determined and not first.sources & each.sources,
                "bag",
                carry,
                first.remote or each.remote,
                first.windowed or each.windowed,
            )
        return first

    def add(self, op: str, inputs: Sequence[Stream], now: Stream, **values: Any) -> Stream:
        """Add a step; `now` is what is known of what it gives."""
        form = values.pop("form", now.form)
        step = {"op": op, "inputs": [each.at for each in inputs], "form": form, "takes": "", "remote": False, **values}
        self.steps.append(step)
        made = replace(now, at=len(self.sources) + len(self.steps) - 1, form=form, remote=step["remote"])
        self.streams.append(made)
        return made

    def step(self, made: Stream) -> dict[str, Any]:
        """Return the step that gives a stream."""
        return self.steps[made.at - len(self.sources)]

    def emitting(self, made: Stream) -> Stream:
        """Draw named outputs of the step that gives a stream; nothing goes on from some of them. Returns the stream."""
        draw, step = self.draw, self.step(made)
        for number in range(draw(some.sampled_from([0, 0, 0, 1, 2]))):
            mod = draw(some.integers(2, 5))
            output = {"name": f"out{number}", "form": draw(some.sampled_from(FORMS)), "mod": mod}
            step.setdefault("outputs", []).append({**output, "rest": draw(some.integers(0, mod - 1))})
            if draw(some.sampled_from([True, True, False])):
                values = {"form": output["form"], "name": output["name"], "remote": step["remote"]}
                self.add("output", [made], made, **values)
        return made

    def alike(self, inputs: Sequence[Stream]) -> list[Stream]:
        """Give a key to streams without one that others with keys are merged with (T229)."""
        if not any(each.carry for each in inputs):
            return list(inputs)
        return [each if each.carry else self.collected([each]) for each in inputs]

    def collected(self, inputs: Sequence[Stream]) -> Stream:
        """Add a step that gives messages the empty key."""
        now = self.merged(inputs)
        now = replace(now, carry="all", order="bag", determined=now.determined and not (now.multi and now.scattered))
        return self.add("collect", inputs, now)

    def fail(self, *moments: str) -> dict[str, Any]:
        """Draw whether user code fails, and when."""
        draw = self.draw
        if not draw(some.sampled_from([False, False, False, True])):
            return {}
        mod = draw(some.integers(2, 11))
        when = draw(some.sampled_from(moments))
        return {"fail": {"mod": mod, "rest": draw(some.integers(0, mod - 1)), "when": when}}

    def where(self, inputs: Sequence[Stream]) -> dict[str, Any]:
        """Draw whether the other program runs a step, and the form of what it gives."""
        form = self.draw(some.sampled_from(FORMS))
        taken = {each.form for each in inputs}
        is_remote = self.other and len(taken) == 1 and "" not in taken and self.draw(some.booleans())
        return {"form": form, "remote": is_remote, "takes": taken.pop() if is_remote else ""}

    def stateless(self, op: str, inputs: Sequence[Stream]) -> Stream:
        """Add a step without state."""
        draw, now = self.draw, self.merged(inputs)
        mod = draw(some.integers(2, 5))
        values = {
            "add": {"by": draw(some.integers(0, 1000))},
            "split": {"n": mod},
            "filter": {"mod": mod, "rest": draw(some.integers(0, mod - 1))},
        }[op]
        now = replace(now, multi=now.multi or op == "split")
        return self.emitting(self.add(op, inputs, now, **self.where(inputs), **self.fail("before"), **values))

    def rekeyed(self, inputs: Sequence[Stream]) -> Stream:
        """Add a step that makes an item ask for another key."""
        now = self.merged(inputs)
        values = {"mod": self.draw(some.integers(1, KEYS)), "shift": self.draw(some.integers(0, 5))}
        carry = "mixed" if now.carry == "key" else now.carry  # what a message carries is no longer what it asks for
        determined = now.determined and not (now.multi and now.scattered)
        now = replace(now, order="bag", carry=carry, determined=determined)
        return self.add("rekey", inputs, now, form=self.draw(some.sampled_from(FORMS)), **values)

    def keyed(self, inputs: Sequence[Stream]) -> Stream:
        """Add steps that give messages a key."""
        if self.draw(some.sampled_from([True, True, True, False])):
            now = self.rekeyed(inputs)
            return self.add("key_by", [now], replace(now, carry="key"), **self.fail("before"))
        return self.collected(inputs)

    def stateful(self, op: str, inputs: Sequence[Stream], **values: Any) -> Stream:
        """Add a step with state; what does not depend on the order where none is promised."""
        now = self.merged(inputs)
        if now.windowed and not now.determined:  # a probe, and the window that it fills
            return self.stateless("add", inputs)
        op = op if now.determined else "tally"
        order = {"key": "key", "all": "all"}.get(now.carry, "bag") if now.determined else "bag"
        now = replace(now, order=order, scattered=True, multi=now.multi or op == "fan")
        where = {"form": self.draw(some.sampled_from(FORMS))} if "state" in values else self.where(inputs)
        values |= {"keep": self.draw(some.sampled_from([0, 5, 100]))} if op != "tally" else {}
        values |= {"n": self.draw(some.integers(2, 3))} if op == "fan" else {}
        return self.emitting(self.add(op, inputs, now, **where, **self.fail("before", "after"), **values))

    def window(self, op: str, inputs: Sequence[Stream]) -> Stream:
        """Add windows; what time makes of several keys has the sequence of one tick."""
        draw, now = self.draw, self.merged(inputs)
        if not now.determined:
            return self.stateful("tally", inputs)
        order = {"key": "key", "all": "all"}.get(now.carry, "bag")
        now = replace(now, order=order, scattered=True, windowed=True)
        if self.has_time:
            now = replace(now, multi=True, sources=frozenset(range(len(self.sources))))
        if op == "timed":
            return self.timed(inputs, now)
        form, fail = draw(some.sampled_from(FORMS)), self.fail("before")
        if op == "count":
            return self.emitting(self.add(op, inputs, now, form=form, size=draw(some.integers(1, 6)), **fail))
        return self.emitting(self.add(op, inputs, now, form=form, ms=draw(some.sampled_from([1000, 5000])), **fail))

    def timed(self, inputs: Sequence[Stream], now: Stream) -> Stream:
        """Add a step with state that ends, or with timers."""
        draw, ms = self.draw, some.sampled_from([500, 1000, 3000])
        timers = [{"name": name, "ms": draw(ms)} for name in draw(some.sampled_from([["end", "again"], ["again"], []]))]
        ttl = draw(some.sampled_from([0, 1000, 5000] if timers else [1000, 5000]))
        form, fail = draw(some.sampled_from(FORMS)), self.fail("before", "after")
        return self.emitting(self.add("timed", inputs, now, form=form, timers=timers, ttl=ttl, **fail))

    def ends(self) -> list[Stream]:
        """Mark the streams that nobody takes."""
        taken = {at for step in self.steps for at in step["inputs"] if step["op"] != "output"}
        open_ends = [each for each in self.streams if each.at not in taken]
        return [self.add("mark", [each], each, form="text", end=end) for end, each in enumerate(open_ends)]

    def sinks(self, inputs: Sequence[Stream]) -> list[dict[str, Any]]:
        """Draw the sinks of an end."""
        made = []
        for _ in range(self.draw(some.sampled_from([1, 1, 2]))):
            made.append({"inputs": [each.at for each in inputs], **self.fail("before")})
        return made


@some.composite
def applications(
    draw: Draw, languages: Sequence[str] = (PYTHON, GO), messages: int = 60, *, begins: Sequence[str] = ()
) -> Application:
    """Draw an application.

    Args:
        draw: Given by hypothesis.
        languages: Of its program.
        messages: At most so many, besides those that look at the states at the end.
        begins: Steps with which it begins, each after the one before.
    """
    api = "graph" if begins else draw(some.sampled_from(["graph", "graph", "builder"]))
    main = draw(some.sampled_from(list(languages)))
    other = ""
    if api == "graph" and len(languages) > 1:
        other = draw(some.sampled_from(["", "", *languages]))
    has_time = not TICKED.isdisjoint(begins) or (api == "graph" and draw(some.booleans()))
    drawing = Drawing(draw, draw(some.integers(1, 3)), bool(other), has_time)
    if api == "graph":
        sinks, orders = _graph(draw, drawing, begins)
    else:
        sinks, orders = _builder(draw, drawing)
    has_time = any(step["op"] in TICKED for step in drawing.steps)
    assume(not _has_range_after_count(drawing))
    rng = random.Random(draw(some.integers(0, 2**32 - 1)))
    count = draw(some.integers(0, messages))
    chunks = tuple(_chunks(rng, len(drawing.sources), count, has_time))
    if not any(step["remote"] for step in drawing.steps):
        other = ""
    return Application(
        api,
        main,
        other,
        tuple(drawing.sources),
        tuple(drawing.steps),
        tuple(sinks),
        tuple(orders),
        chunks,
        tuple(_batches(rng, len(chunks), draw(some.sampled_from([1, 3, 10, 1000])))),
        draw(_settings()),
    )


def _has_range_after_count(drawing: Drawing) -> bool:
    """Say whether steps for which time passes follow windows of a number.

    What a tick makes the latter emit has the time of its last message: maybe late, which the reference lacks.
    """
    first, after = len(drawing.sources), set()
    for at, step in enumerate(drawing.steps, first):
        if step["op"] == "count" or after.intersection(step["inputs"]):
            after.add(at)
            if step["op"] in TICKED:
                return True
    return False


def _graph(draw: Draw, drawing: Drawing, begins: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    for op in begins:
        now = drawing.streams[-1]
        drawing.window(op, [now if now.carry else drawing.keyed([now])])
    for _ in range(draw(some.integers(0 if begins else 1, 9))):
        streams = drawing.streams[::-1]
        inputs = [draw(some.sampled_from(streams[:4]))]
        if len(streams) > 1 and draw(some.sampled_from([False, False, True])):
            inputs.append(draw(some.sampled_from([each for each in streams if each is not inputs[0]])))
        if any(each.remote for each in inputs) and len({each.form for each in inputs}) > 1:
            inputs = inputs[:1]
        inputs = drawing.alike(inputs)
        states = sum(step["op"] in (*STATE_OPS, "count", *TICKED) for step in drawing.steps)
        ops = ["add", "split", "filter", "key"]
        if states < 5:
            ops += ["total", "fan", "tally", "total", "count"]
            ops += ["range", "session", "timed", "timed"] if drawing.has_time else []
        op = draw(some.sampled_from(ops))
        if op in ("add", "split", "filter"):
            drawing.stateless(op, inputs)
            continue
        if op == "key" or not drawing.merged(inputs).carry:
            inputs = [drawing.keyed(inputs)]
        if op in STATE_OPS:
            drawing.stateful(op, inputs)
        elif op != "key":
            drawing.window(op, inputs)
    ends = drawing.alike(drawing.ends())
    sinks = drawing.sinks(ends)
    return sinks, [each.order for each in ends]


def _builder(draw: Draw, drawing: Drawing) -> tuple[list[dict[str, Any]], list[str]]:
    sinks: list[dict[str, Any]] = []
    orders = []
    for number in range(len(drawing.sources)):
        now, state, first = drawing.streams[number], 0, len(drawing.streams)
        for _ in range(draw(some.integers(0, 5))):
            op = draw(some.sampled_from(["total", "add", "split", "filter", "rekey", "fan", "tally"]))
            if op in ("add", "split", "filter"):
                now = drawing.stateless(op, [now])
            elif op == "rekey":
                now = drawing.rekeyed([now])
            elif state < 4:
                # States come in one order in all pipelines: none feeds itself.
                state = draw(some.integers(state, 3)) + 1
                now = drawing.stateful(op, [replace(now, carry="key")], state=f"s{state}")
        outputs = [each for each in drawing.streams[first:] if drawing.step(each)["op"] == "output"]
        for end in [now, *outputs]:
            marked = drawing.add("mark", [end], end, form="text", end=len(orders))
            orders.append(marked.order)
            if not sinks or draw(some.sampled_from([True, True, False])):
                sinks += drawing.sinks([marked])
    return sinks, orders


def _chunks(rng: random.Random, sources: int, count: int, has_time: bool) -> Iterator[Chunk]:
    """Interleave messages of sources, in frames of several sizes; the last ones look at the states."""
    longest, now, number = rng.choice([1, 3, 20]), FIRST_MS, 0
    pause, idle = rng.choice([0, 100, 1500, 6000]), rng.choice([1, 8])
    while number < count:
        size = min(rng.randint(1, longest), count - number)
        payloads = []
        for _ in range(size):
            text = f"{number} {rng.randrange(KEYS)} {rng.randrange(10_000)}"
            payloads.append(rng.choices([text, "skip", "no item"], [30, 1, 1])[0].encode())
            number += 1
        yield Chunk(rng.randrange(sources), tuple(payloads), now)
        now += rng.randint(0, pause)
        if has_time and not rng.randrange(4):
            for _ in range(rng.choice([1, 1, idle])):
                yield Chunk(None, (), now)
                now += rng.randint(0, pause)
    for source in range(sources):
        yield Chunk(source, tuple(f"{PROBE + key} {key} {key}".encode() for key in range(KEYS)), now)
    if has_time:
        for _ in range(rng.choice([0, idle])):  # nobody sends; windows after windows end one after the other
            now += rng.choice([1000, 2500])
            yield Chunk(None, (), now)
        yield Chunk(None, (), now + 20_000)


def _batches(rng: random.Random, chunks: int, longest: int) -> Iterator[int]:
    while chunks:
        size = min(chunks, rng.randint(1, longest))
        yield size
        chunks -= size


def _settings() -> some.SearchStrategy[Settings]:
    sizes = [1 << 20, 1, 100]
    return some.builds(
        Settings,
        shuffle_partitions=some.integers(1, 3),
        buckets_per_partition=some.integers(1, 3),
        ranges=some.integers(1, 3),
        frame_bytes=some.sampled_from(sizes),
        chunk_bytes=some.sampled_from(sizes),
        cache_bytes=some.sampled_from([64 << 20, 1]),
        small_log_bytes=some.sampled_from([1 << 18, 0, 200]),
        seed=some.integers(0, 1000),
        fault=some.sampled_from([*[""] * 20, *FAULTS]),
    )
