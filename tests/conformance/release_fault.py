"""The faults of calls that stay open of the wrong worker."""

from collections.abc import Callable, Iterator
from typing import Any

from conformance.wire import Fault, Reply
from wallaroo.worker.bucket.state import UNREAD


class ReleasesTwice(Fault):
    """Outputs of released parts are sent again with the last part."""

    def __init__(self) -> None:
        self._sent: list[Reply] = []

    def reply(self, reply: Reply) -> Iterator[Reply]:
        kind = reply.WhichOneof("kind")
        if kind == "output":
            self._sent.append(reply)
        elif self.has_state and kind == "done":
            yield from self._sent
        yield reply


class ReleasesNothing(Fault):
    """Outputs wait for the call's end."""

    def __init__(self) -> None:
        self._held: list[Reply] = []

    def reply(self, reply: Reply) -> Iterator[Reply]:
        kind = reply.WhichOneof("kind")
        if kind == "output" and self.has_state:
            self._held.append(reply)
            return
        if kind != "released":
            yield from self._held
            self._held = []
        yield reply


def last_counts(_: Callable[..., Any]) -> Callable[..., Any]:
    """Return an `CallRun._counted` that forgets the parts before."""
    return lambda self, counts: list(counts)


def no_order(_: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `Stage.order` that leaves messages as steps made them."""
    return lambda self: None


def careful_repeat(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return an `CallRun._repeat` after which states of released parts are taken for those of the log."""

    def repeat(self: Any, *given: Any) -> None:
        original(self, *given)
        self._before = {cell: data for cell, data in self._before.items() if cell.live is UNREAD}

    return repeat
