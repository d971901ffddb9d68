"""Messages of dead letters that run again, among others, in any order and micro-batches, against a reference."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wallaroo
from wallaroo.frame import FRAMED, REPLAY_PORT, FrameHeader, encode_frame, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.state import StateCache
from wallaroo_runtime.lowering.error_policy import ErrorPolicy
from wallaroo_runtime.memory.engine import Batch, Engine
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.memory.start import start

STEPS = ("parse", "split", "key", "sum", "mark", "last", "encode")
BROKEN = {"is": True}  # as the program is before somebody corrects it


def check(step: str, faults: str) -> None:
    if BROKEN["is"] and step in faults.split("+"):
        msg = f"{step} is broken"
        raise ValueError(msg)


class Item:
    """A message that needs pickle: key, number and the steps that fail on it."""

    def __init__(self, key: str, number: int, faults: str) -> None:
        self.key, self.number, self.faults = key, number, faults


class Total:
    def __init__(self) -> None:
        self.sum = 0


@wallaroo.computation(name="parse")
def parse(text: str) -> Any:
    key, number, faults = text.split("=")
    check("parse", faults)
    return Item(key, int(number), faults)


@wallaroo.computation_multi(name="split")
def split(item: Item) -> list[Item]:
    check("split", item.faults)
    return [item, Item(item.key, 10 * item.number, item.faults)]


@wallaroo.partition
def key_of(item: Item) -> str:
    check("key", item.faults)
    return item.key


@wallaroo.state_computation(name="sum")
def add(item: Item, state: Total) -> Any:
    state.sum += item.number
    check("sum", item.faults)
    return f"{item.key}={state.sum}={item.faults}", True


@wallaroo.computation(name="mark")
def mark(text: str) -> str:
    check("mark", text.split("=")[2])
    return f"{text}!"


@wallaroo.partition
def last_key(text: str) -> str:
    return text[0]


@wallaroo.state_computation(name="last")
def last(text: str, state: Total) -> Any:
    check("last", text.split("=")[2].rstrip("!"))
    state.sum += 1
    return f"{text}{state.sum}", True


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data: bytes) -> str:
    return data.decode()


@wallaroo.encoder
def encode(text: str) -> bytes:
    check("encode", text.split("=")[2].split("!")[0])
    return text.encode()


def application(args: list[str]) -> wallaroo.Application:
    builder = wallaroo.ApplicationBuilder("again")
    builder.new_pipeline("main", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode))
    builder.to(parse)
    builder.to(split)
    builder.to_state_partition(add, Total, "sum", key_of)
    builder.to(mark)
    builder.to_state_partition(last, Total, "last", last_key)
    builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
    return builder.build()


Entry = tuple[str, Any]  # a step and what comes to it


class Reference:
    """What must come of messages, one after the other, from whichever step on."""

    def __init__(self) -> None:
        self.sums: defaultdict[str, int] = defaultdict(int)
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.given: defaultdict[str, list[str]] = defaultdict(list)
        self.letters: list[Entry] = []

    def run(self, step: str, value: Any, *, broken: bool) -> None:
        """Run a message, given as key, number or text, and faults, from a step to the end."""
        key, content, faults = value
        if broken and step in faults.split("+"):
            self.letters.append((step, value))
            return
        if step == "encode":
            self.given[key].append(content)
            return
        for result in self._results(step, key, content, faults):
            self.run(STEPS[STEPS.index(step) + 1], (key, result, faults), broken=broken)

    def _results(self, step: str, key: str, content: Any, faults: str) -> list[Any]:
        if step == "split":
            return [content, 10 * content]
        if step == "sum":
            self.sums[key] += content
            return [f"{key}={self.sums[key]}={faults}"]
        if step == "mark":
            return [f"{content}!"]
        if step == "last":
            self.counts[key] += 1
            return [f"{content}{self.counts[key]}"]
        return [content]


faults = st.lists(st.sampled_from(STEPS), max_size=2, unique=True).map("+".join)
messages = st.tuples(st.sampled_from("abc"), st.integers(0, 5), faults)


def source_frame(message: tuple[str, int, str], sequence: int, port: int) -> bytes:
    payload = "=".join(map(str, message)).encode()
    return write_frame(FrameHeader(port, 1, sequence, 0, FRAMED, 0), [len(payload).to_bytes(4, "big"), payload])


def replay_frame(letters: list[bytes], sequence: int) -> bytes:
    return encode_frame(letters, port=REPLAY_PORT, sequence=sequence, timestamp_ms=7)


@pytest.fixture(scope="module")
def app() -> Iterator[MemoryRun]:
    """Give the application; its worker serves many engines."""
    run = start(application, [], check_persist=False)
    yield run
    run.close()


def letters_of(batch: Batch) -> list[bytes]:
    return [value for frame in batch.letters for value in read_frame(frame).values()]


def in_steps(letters: list[bytes]) -> list[bytes]:
    """Return letters in an order that does not depend on tasks."""
    return sorted(letters, key=lambda value: (pb.DeadLetter.FromString(value).sequence, value))


@settings(deadline=None, max_examples=60)
@given(st.data(), st.lists(messages, max_size=20), st.lists(messages, max_size=6), st.randoms(use_true_random=False))
def test_letters_run_again(app: MemoryRun, data: st.DataObject, before: Any, after: Any, source: Any) -> None:
    port, sink = app.plan.ports["0/sources/0"], app.plan.ports["0/sinks/0"]
    app._channels["main"].calls._cache = StateCache(data.draw(st.sampled_from((0, 1 << 20))))  # type: ignore[attr-defined]
    policy = ErrorPolicy.of(app.topology, "")
    engine = Engine(app.plan, app._channels, policy, shuffle=source.shuffle, topology=app.topology)
    reference, frames = Reference(), []
    BROKEN["is"] = True
    first = engine.run([[source_frame(each, at, port) for at, each in enumerate(before)]])
    for each in before:
        reference.run("parse", each, broken=True)
    letters = in_steps(letters_of(first))
    assert sorted(map(step_in, letters)) == sorted(step for step, _ in reference.letters)
    frames += first.frames[sink]

    # A letter of a state step, a computation or a sink: which one is the same message of the reference is in its text.
    left = {key: [entry for entry in reference.letters if entry[0] == key] for key in STEPS}
    reference.letters = []
    BROKEN["is"] = data.draw(st.booleans())
    events: list[Any] = data.draw(st.permutations([*letters, *after]))
    sequence = 1000
    while events:
        count = data.draw(st.integers(1, len(events)))
        border = data.draw(st.integers(0, count))
        made = []
        for event in events[:count]:
            is_letter = isinstance(event, bytes)
            made.append(replay_frame([event], sequence) if is_letter else source_frame(event, sequence, port))
            if is_letter:
                letter = pb.DeadLetter.FromString(event)
                entry = next(each for each in left[step_of(letter)] if same(each[1], letter, app))
                left[step_of(letter)].remove(entry)
                reference.run(*entry, broken=BROKEN["is"])
            else:
                reference.run("parse", event, broken=BROKEN["is"])
            sequence += 1
        batch = engine.run([[b"".join(made[:border])], [b"".join(made[border:])]])
        frames += batch.frames[sink]
        again = letters_of(batch)
        assert sorted(map(step_in, again)) == sorted(step for step, _ in reference.letters)
        reference.letters = []
        events = events[count:]
    given: defaultdict[str, list[str]] = defaultdict(list)
    for frame in sorted(map(read_frame, frames), key=lambda frame: frame.header.sequence):
        for value in frame.values():
            given[bytes(value).decode()[0]].append(bytes(value).decode())
    assert {key: sorted(texts) for key, texts in given.items()} == {
        key: sorted(texts) for key, texts in reference.given.items()
    }


def step_of(letter: pb.DeadLetter) -> str:
    paths = {"0/steps/0": "parse", "0/steps/1": "split", "0/steps/3": "mark", "0/steps/4": "last"}
    if letter.path == "0/sinks/0":
        return "encode"
    if letter.path == "0/steps/2":
        return "sum" if letter.has_key else "key"
    return paths[letter.path]


def step_in(value: bytes) -> str:
    return step_of(pb.DeadLetter.FromString(value))


def same(value: Any, letter: pb.DeadLetter, app: MemoryRun) -> bool:
    """Say whether a letter has the message of an entry of the reference."""
    key, content, faults = value
    found = app._calls("main")._codec.decode(letter.encoding, [len(letter.input)], letter.input)[0]  # type: ignore[union-attr]
    if isinstance(found, Item):
        return (found.key, found.number, found.faults) == (key, content, faults)
    if step_of(letter) == "parse":
        return bool(found == f"{key}={content}={faults}")
    return bool(found == content)
