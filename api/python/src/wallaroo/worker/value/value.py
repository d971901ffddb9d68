"""Messages and states as bytes. Messages of one simple type are written directly, others as one pickle each.

Messages are never pickled together. Otherwise it would depend on the frames whether two messages share an object after
reading.
"""

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import partial
from typing import Any

from wallaroo.check.in_place import is_fixed
from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.diagnostic.location import one_line
from wallaroo.message.frame import PLAIN, FrameError, cut
from wallaroo.message.serialization import Serializer, deserialize
from wallaroo.worker.value import pickle_template
from wallaroo.worker.value.unpicklable import REMEDY, reason_of

PICKLED, TEXT, BYTES, INTEGERS, FLOATS, CUSTOM = 16, 17, 18, 19, 20, 32

_IMMUTABLE = frozenset((str, bytes, int, float, bool))
_MUTABLE = frozenset((dict, list, set, bytearray))
_NUMBERS = {INTEGERS: "q", FLOATS: "d"}
_SIMPLE = frozenset((TEXT, BYTES, INTEGERS, FLOATS))


class NotSerializableError(Exception):
    """A state cannot be written. Code: C504 if a message is the cause, else C511.

    Attributes:
        port: Port of the state's log frames; below 0 if it is not known.
        kept: What cannot be written, for the remedy: the state, or an accumulator.
    """

    kept = "the state"

    def __init__(self, state: Any, cause: BaseException, port: int = -1, key: bytes = b"") -> None:
        super().__init__(reason_of(state, cause))
        self.type_name, self.port, self.key = type(state).__name__, port, key

    def finding(self, code: str, step: str, key: str) -> Diagnostic:
        """Return the diagnostic for the user: C504 if one message is the cause, C511 if it concerns the whole call."""
        if code == "C511":
            return Diagnostic.of(code, step=step, key=key, error=self)
        fix = f"keep only what can be pickled in {self.kept}, {REMEDY}"
        return Diagnostic.of(code, step=step, type=self.type_name, error=self, fix=fix)


class StateTooLargeError(NotSerializableError):
    """A state is too large. Code: C525.

    Attributes:
        size: Size of the state in bytes.
        limit: Largest allowed size in bytes.
    """

    def __init__(self, state: Any, size: int, limit: int, port: int = -1, key: bytes = b"") -> None:
        super().__init__(state, ValueError(f"it has {size} bytes; at most {limit} are possible"), port, key)
        self.size, self.limit = size, limit

    def finding(self, code: str, step: str, key: str) -> Diagnostic:
        """Return the diagnostic for the user, which is C525 for any `code`."""
        hint = "give the messages more keys, or let the state forget what it no longer needs; it stays as it was"
        return Diagnostic.of(
            "C525", step=step, what=f"the state of key {key}", size=self.size, limit=self.limit, hint=hint
        )


class StateReadError(Exception):
    """A state of the log cannot be read. Code: C507."""

    def __init__(self, key: bytes, cause: BaseException) -> None:
        super().__init__(one_line(cause))
        self.key = key


class Serialized(bytes):
    """The bytes of a message that was serialized early, because later user code could change it."""


class ValueCodec:
    """Writes and reads the values of frames between stages and in state logs.

    Args:
        serializer: The application's functions. If the user wrote them, they are used for every message.
    """

    def __init__(self, serializer: Serializer) -> None:
        self.is_custom = serializer.is_custom
        self.encoding = CUSTOM if serializer.is_custom else PICKLED
        self._dump, self.load = serializer.dump, serializer.load
        # Serializes one message or state; raises TypeError if the user's `serialize` does not return bytes.
        self.dump: Callable[[Any], bytes] = self._checked if serializer.is_custom else pickle_template.dump
        # Serializes many messages or states.
        self.dump_all: Callable[[Sequence[Any]], list[bytes]] = (
            self._all_checked if serializer.is_custom else pickle_template.dump_all
        )

    def _checked(self, value: Any) -> bytes:
        data = self._dump(value)
        if isinstance(data, (bytes, bytearray)):
            return bytes(data)
        msg = f"serialize returned {type(data).__name__}; expected bytes"
        raise TypeError(msg)

    def _all_checked(self, values: Sequence[Any]) -> list[bytes]:
        return list(map(self._checked, values))

    def dump_state(self, state: Any) -> bytes:
        """Serialize a state. Check that the user's `deserialize` can read it, because the next run must do so."""
        return self.dump_states([state])[0]

    def dump_states(self, states: Sequence[Any]) -> list[bytes]:
        """Serialize many states, as `dump_state` serializes one."""
        values = self.dump_all(states)
        if self.is_custom:
            for data in values:
                try:
                    self.load(data)
                except BaseException as err:
                    msg = f"it cannot be read back; {one_line(err)}"
                    raise ValueError(msg) from err
        return values

    def freeze(self, message: Any) -> Any:
        """Return a message in a form that later changes of the message do not affect."""
        if not self.is_custom and type(message) in _IMMUTABLE:
            return message
        return Serialized(self.dump(message))

    def copy(self, message: Any) -> Any:
        """Return a copy of a message for a further step, or the message itself if it cannot change or be copied."""
        if type(message) in _IMMUTABLE:
            return message
        try:
            if type(message) not in _MUTABLE and is_fixed(message):
                return message
            return deepcopy(message) if self.is_custom else self.load(self.dump(message))
        except BaseException:  # user code, or a message that pickle refuses
            with suppress(BaseException):
                return deepcopy(message)
        return message

    def encode(self, messages: Sequence[Any]) -> tuple[int, Sequence[int], bytes]:
        """Return encoding, lengths and bytes of messages that `freeze` has returned."""
        types = set(map(type, messages))
        if types == {str}:
            return (TEXT, *encode_text(messages))
        if types == {Serialized}:
            return self.encoding, list(map(len, messages)), b"".join(messages)
        if types == {bytes}:
            return BYTES, list(map(len, messages)), b"".join(messages)
        if types == {float} or (types == {int} and _fit(messages)):
            encoding = FLOATS if types == {float} else INTEGERS
            numbers = array(_NUMBERS[encoding], messages)
            if sys.byteorder == "big":
                numbers.byteswap()
            return encoding, bytes((8,)) * len(messages), numbers.tobytes()
        parts = [value if type(value) is Serialized else self.dump(value) for value in messages]
        return self.encoding, list(map(len, parts)), b"".join(parts)

    def decode(self, encoding: int, lengths: Sequence[int], data: bytes) -> list[Any]:
        """Return the messages of a frame.

        Raises:
            FrameError: This worker does not know the encoding.
        """
        if encoding == TEXT:
            return decode_text(lengths, data)
        if encoding in (BYTES, PLAIN):
            return cut(data, lengths)
        if encoding in _NUMBERS:
            if len(data) != 8 * len(lengths):
                msg = f"numbers of {len(data)} bytes; expected {8 * len(lengths)}"
                raise FrameError(msg)
            numbers = array(_NUMBERS[encoding], data)
            if sys.byteorder == "big":
                numbers.byteswap()
            return numbers.tolist()
        return list(map(self.loader(encoding), cut(data, lengths)))

    def loader(self, encoding: int) -> Any:
        """Return the function that deserializes a value with this encoding.

        Raises:
            FrameError: This worker does not know the encoding.
        """
        if encoding == self.encoding:
            return self.load
        if encoding == PICKLED:
            return deserialize
        if encoding in _SIMPLE:
            return partial(self._read_simple, encoding)
        msg = f"values have encoding {encoding}, which this worker did not write"
        raise FrameError(msg)

    def _read_simple(self, encoding: int, data: bytes) -> Any:
        return self.decode(encoding, (len(data),), data)[0]


def encode_text(texts: Sequence[str], errors: str = "surrogatepass") -> tuple[Sequence[int], bytes]:
    """Return the lengths in bytes and the joined UTF-8 bytes of texts."""
    joined = "".join(texts)
    if joined.isascii():
        return list(map(len, texts)), joined.encode()
    parts = [text.encode("utf-8", errors) for text in texts]
    return list(map(len, parts)), b"".join(parts)


def decode_text(lengths: Iterable[int], data: bytes) -> list[str]:
    """Return the texts that joined UTF-8 bytes contain. The lengths are in bytes."""
    if data.isascii():
        joined: Any = data.decode("ascii")
        texts: list[str] = cut(joined, lengths)  # type: ignore[assignment]
        return texts
    return [part.decode("utf-8", "surrogatepass") for part in cut(data, lengths)]


def _fit(numbers: Sequence[int]) -> bool:
    return min(numbers) >= -(1 << 63) and max(numbers) < 1 << 63
