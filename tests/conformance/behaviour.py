"""Faults of what a worker does: each replaces a piece of the Python worker by one that is wrong in one way."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

from conformance.release_fault import careful_repeat, last_counts, no_order
from wallaroo.message import state_piece
from wallaroo.message.codec import CODECS, Codec
from wallaroo.message.frame import FrameError, read_frame
from wallaroo.message.state_piece import Joiner
from wallaroo.worker.bucket import bucket, state, state_cache, state_cells
from wallaroo.worker.bucket.call_run import CallRun
from wallaroo.worker.host import call
from wallaroo.worker.stage import chain, exit, stage
from wallaroo.worker.value.value import NotSerializableError, StateReadError

Wrap = Callable[[Any], Any]


@contextmanager
def replaced(owner: Any, name: str, wrap: Wrap) -> Iterator[None]:
    """Put `wrap(original)` in the place of an attribute, or of an item of a dict."""
    is_item = isinstance(owner, dict)
    # Of a class the attribute itself, so that a static method stays one.
    original = owner[name] if is_item else vars(owner)[name]
    put: Callable[[Any], Any] = (
        (lambda value: owner.__setitem__(name, value)) if is_item else (lambda value: setattr(owner, name, value))
    )
    put(wrap(original))
    try:
        yield
    finally:
        put(original)


def unreadable_is_new(original: Any) -> Any:
    def cell(self: Any, table: Any, key: bytes, build: Any) -> Any:
        try:
            return original(self, table, key, build)
        except StateReadError:
            table[key] = state.Cell(build())
            return table[key]

    return cell


def fails_whole(original: Any) -> Any:
    def result(self: Any, **given: Any) -> Any:
        try:
            return original(self, **given)
        except NotSerializableError as err:
            msg = "a state cannot be written"
            raise RuntimeError(msg) from err

    return result


def last_first(original: Any) -> Any:
    def link(self: Any) -> Any:
        links = original(self)
        for each in links:
            each.readers.reverse()
        return links

    return link


def swapped(original: Any) -> Any:
    def link(self: Any) -> Any:
        links = original(self)
        for each in links:
            each.outputs = dict(zip(each.outputs, reversed(each.outputs.values()), strict=True))
        return links

    return link


def unmarked(_: Any) -> Any:
    def checked(step: Any, run: Any, declared: Any) -> Any:
        return lambda *given: [getattr(each, "value", each) for each in run(*given)]

    return checked


def by_path(original: Any) -> Any:
    def link(self: Any) -> Any:
        links = original(self)
        for each in links:
            each.readers.sort(key=lambda number: self.nodes[number].path)
        return links

    return link


def first_entry_wins(original: Any) -> Any:
    def read(self: Any, entries: Any) -> None:
        if not self.tables:
            original(self, list(entries)[:1])

    return read


def damage_is_empty(original: Any) -> Any:
    def read(self: Any, entries: Any) -> None:
        with suppress(FrameError):
            original(self, entries)

    return read


def refuses_empty(original: Any) -> Any:
    def read(header: Any, data: bytes, start: int) -> Any:
        if not header.count:
            msg = "a frame without messages"
            raise FrameError(msg)
        return original(header, data, start)

    return read


def as_whole_states(_: Any) -> Any:
    return lambda self, entry: read_frame(entry)


def without_absent(original: Any) -> Any:
    def take(self: Any, entry: bytes) -> Any:
        frame = original(self, entry)
        if frame is not None:
            frame.absent = []
        return frame

    return take


def with_cache(limit: int) -> Wrap:
    """Return a wrap of `StateCache.__init__`."""
    return lambda original: lambda self, _: original(self, limit)


def checks(always: bool) -> Wrap:
    """Return a wrap of `CallRunner.__init__` that does not look at the variable."""

    def wrap(original: Any) -> Any:
        return lambda self, *given, **named: original(self, *given, **(named | {"checks_persist": always}))

    return wrap


def without_lock(original: Any) -> Any:
    def init(self: Any, *given: Any, **named: Any) -> None:
        original(self, *given, **named)
        self._user = nullcontext()

    return init


def keys_from_the_low_end(original: Any) -> Any:
    return lambda key: key.to_bytes(8, "little") if type(key) is int else original(key)


def exponents(codec: Codec) -> Codec:
    def encode(message: Any) -> bytes:
        return f"{message:e}".encode() if type(message) is float else codec.encode(message)

    return Codec(codec.name, encode, codec.decode)


def unsorted(codec: Codec) -> Codec:
    return Codec(
        codec.name,
        lambda message: json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(),
        codec.decode,
    )


def decodes_loosely(codec: Codec) -> Codec:
    return Codec(codec.name, codec.encode, lambda data: data.decode("utf-8", "replace"))


def none_goes_on(original: Any) -> Any:
    def result(self: Any, number: int, indent: int, loops: int, key: str = "k") -> None:
        self._readers(number, f"('none' if v{number} is None else v{number})", indent, loops, key)

    return result


def persists_all(original: Any) -> Any:
    def put(self: Any, indent: int, line: str) -> None:
        original(self, indent, line.replace("if persist:", "if True:"))

    return put


Calls, Run, State, Cache = call.CallRunner, bucket.BucketRun, state.BucketState, state_cache.StateCache
BEHAVIOURS: dict[str, tuple[Any, str, Wrap]] = {
    "unreadable-state-is-new": (State, "cell", unreadable_is_new),
    "unwritable-state-ends-the-call": (Run, "_result", fails_whole),
    "state-is-not-put-back": (Run, "_put_back", lambda _: lambda *given: None),
    "counts-last-part": (CallRun, "_counted", last_counts),
    "step-by-step": (stage.Stage, "order", no_order),
    "repeats-from-the-log": (CallRun, "_repeat", careful_repeat),
    "ignores-check-persist": (Calls, "__init__", checks(False)),
    "always-checks-persist": (Calls, "__init__", checks(True)),
    "reversed-branches": (stage.Stage, "_link", last_first),
    "branches-in-document-order": (stage.Stage, "_link", by_path),
    "swapped-outputs": (stage.Stage, "_link", swapped),
    "outputs-are-results": (stage, "checked", unmarked),
    "undeclared-outputs-are-dropped": (stage, "checked", lambda _: lambda step, run, declared: run),
    "unbounded-cache": (Cache, "__init__", with_cache(1 << 60)),
    "no-cache": (Cache, "take", lambda _: lambda self, key, version: None),
    "first-entry-wins": (State, "read", first_entry_wins),
    "damaged-log-is-empty": (State, "read", damage_is_empty),
    "refuses-empty-frames": (stage, "read_body", refuses_empty),
    "pieces-are-states": (Joiner, "take", as_whole_states),
    "whole-states": (state_piece, "PIECE_BYTES", lambda _: 1 << 30),
    "absent-is-a-state": (Joiner, "take", without_absent),
    "runs-as-framed": (bucket, "is_in_order", lambda _: lambda frames: True),
    "none-goes-on": (chain.ChainWriter, "_result", none_goes_on),
    "persists-all": (chain.ChainWriter, "_put", persists_all),
    "open-list": (state_cells, "_unknown", lambda _: lambda part, key: None),
    "little-endian-keys": (exit, "state_key", keys_from_the_low_end),
    "json-exponents": (CODECS, "json", exponents),
    "json-unsorted": (CODECS, "json", unsorted),
    "lax-text": (CODECS, "string", decodes_loosely),
    "ignores-alone": (Calls, "__init__", without_lock),
}


@contextmanager
def behaving(name: str) -> Iterator[None]:
    """Let the Python worker of this process have a fault of this name, if it is one of these."""
    with ExitStack() as stack:
        if name in BEHAVIOURS:
            stack.enter_context(replaced(*BEHAVIOURS[name]))
        yield
