"""The functions that a stage's generated loops call if user code fails or returns an unusual result."""

from collections.abc import Callable, Sequence
from typing import Any

from wallaroo.message.key import state_key
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.exit import KEY_EXPECTED
from wallaroo.worker.value.letter_box import LetterBox, WrongResultError
from wallaroo.worker.value.result import LIST_EXPECTED, listed


def fail_of(
    box: LetterBox, node: pb.Node, step: str, code: str = "C501", *, is_payload: bool = False
) -> Callable[[Any, int, BaseException], None]:
    """Return a function that makes a dead letter if user code fails on a message; the generated loops call it."""
    path, add = node.path, box.add

    def fail(message: Any, sequence: int, error: BaseException) -> None:
        add(path, step, message, sequence, error, code=code, is_payload=is_payload)

    return fail


def items_of(box: LetterBox, node: pb.Node, step: str) -> Callable[[Any, Any, int], Sequence[Any]]:
    """Return a function that lists the messages in a step's result, or makes a dead letter if the result is wrong."""
    path, add = node.path, box.add

    def items(result: Any, message: Any, sequence: int) -> Sequence[Any]:
        items = listed(result)
        if items is None:
            add(path, step, message, sequence, WrongResultError(result, LIST_EXPECTED))
        return items or ()

    return items


def keyed_of(box: LetterBox, node: pb.Node, step: str) -> Callable[[Any, Any, int], bytes | None]:
    """Return a function that converts a key to bytes, or makes a dead letter if the key is wrong, for the loops."""
    path, add = node.path, box.add

    def keyed(key: Any, message: Any, sequence: int) -> bytes | None:
        try:
            return state_key(key)
        except BaseException:
            add(path, step, message, sequence, WrongResultError(key, KEY_EXPECTED))
            return None

    return keyed
