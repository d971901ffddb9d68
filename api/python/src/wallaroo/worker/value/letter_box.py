"""The letter box: collects messages that user code failed on, as dead letters."""

from types import CoroutineType
from typing import Any, NamedTuple, Protocol

from wallaroo.check.in_place import NotInPlaceError
from wallaroo.diagnostic.diagnostic import ADDRESS, Diagnostic, shown
from wallaroo.diagnostic.location import one_line, raised_at, user_traceback
from wallaroo.message.frame import DEAD_LETTER_PORT, PLAIN, Frame
from wallaroo.message.output import UndeclaredOutputError
from wallaroo.message.timer import Deleted, WrongTimerError
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.value.show import shown_json
from wallaroo.worker.value.unpicklable import REMEDY, is_refused, reason_of
from wallaroo.worker.value.value import ValueCodec

PREVIEW_CHARACTERS = 200
MAX_VALUE_BYTES = 48 * 1024 * 1024  # limit for a value with its key; leaves room for a frame's other columns
SPLIT = "split it, e.g. let a @computation_multi return several smaller messages"


class WrongResultError(Exception):
    """User code returned a value that steps of this kind cannot return. Code: C503."""

    def __init__(self, result: Any, expected: str) -> None:
        if isinstance(result, CoroutineType):
            result.close()  # else Python would warn that nobody awaits it
            expected += ", e.g. what `asyncio.run(...)` makes of the coroutine"
        if isinstance(result, Deleted):
            expected += "; only visitors and timers return Deleted, e.g. a timer set with after=timedelta(0)"
        super().__init__(f"returned {shown(result)}; expected {expected}")
        self.actual, self.expected = shown(result), expected


class ExitNode(Protocol):
    """Names an exit of a stage (the node through which a message leaves the stage) for a dead letter.

    Attributes:
        path: Path of the node in the topology.
        name: Name of the step or sink.
    """

    path: str
    name: str


class Unread(NamedTuple):
    """The bytes of a message that cannot be deserialized. Code: C505 for a message in a codec, else C504."""

    data: bytes
    code: str
    reason: str


class LetterBox:
    """Collects the dead letters of one call.

    Args:
        codec: Serializes the inputs of the failed steps.

    Attributes:
        time: Time of a visit, tick, timer or window's result for which user code runs; None if a message has come.
        times: Times of the call's messages, by sequence.
    """

    def __init__(self, codec: ValueCodec) -> None:
        self._codec = codec
        self.source_port = DEAD_LETTER_PORT
        self.time: int | None = None
        self.times: dict[int, int] = {}
        self._frames: list[Frame] = []  # their times are not yet in `times`
        self.letters: list[bytes] = []
        self.sequences: list[int] = []
        self.counts: dict[str, int] = {}

    def clear(self) -> None:
        """Forget all letters."""
        self.letters, self.sequences, self.counts = [], [], {}
        self.time, self._frames = None, []
        self.times.clear()

    def enter(self, frame: Frame) -> None:
        """Keep the times of a frame's messages, because a dead letter shows the time of its message."""
        self._frames.append(Frame(frame.header, sequences=frame.sequences, timestamps=frame.timestamps))

    def _time_of(self, sequence: int) -> int:
        for frame in self._frames:
            for index, time in enumerate(frame.times()):
                self.times.setdefault(frame.sequence_of(index), time)
        self._frames = []
        return self.times.get(sequence, 0) if self.time is None else self.time

    def add(
        self,
        path: str,
        step: str,
        message: Any,
        sequence: int,
        error: BaseException,
        *,
        code: str = "C501",
        key: bytes | None = None,
        is_payload: bool = False,
    ) -> None:
        """Make a dead letter of a message on which user code raised an error, or returned a wrong result."""
        if isinstance(error, WrongResultError):
            finding = Diagnostic.of("C503", step=step, actual=error.actual, expected=error.expected)
        elif isinstance(error, UndeclaredOutputError):
            finding = Diagnostic.of("C527", step=step, output=error.name, declared=error.declared)
        elif isinstance(error, WrongTimerError):
            finding = Diagnostic.of("C529", step=step, timer=error.name, reason=error.reason, fix=error.fix)
        elif isinstance(error, NotInPlaceError):
            finding = Diagnostic.of("C522", step=step, did=error)
        elif code == "C504":
            finding = _not_serializable(step, message, error)
        else:
            finding = Diagnostic.of(code, step=step, error=one_line(error))
        is_ours = (
            isinstance(error, (WrongResultError, UndeclaredOutputError, NotInPlaceError)) and not raised_at(error).line
        )
        trace = "" if is_ours else user_traceback(error)
        self.put(finding, path, step, message, sequence, key=key, is_payload=is_payload, trace=trace)

    def put(
        self,
        finding: Diagnostic,
        path: str,
        step: str,
        message: Any,
        sequence: int,
        *,
        key: bytes | None = None,
        is_payload: bool = False,
        trace: str = "",
    ) -> None:
        """Make a dead letter of a message, with code and text of the diagnostic `finding`."""
        encoding, data = (PLAIN, bytes(message)) if is_payload else self._input(message)
        if len(data) + len(key or b"") > MAX_VALUE_BYTES:
            data = b""  # the input is too large: write the letter without it
        letter = pb.DeadLetter(
            code=finding.code,
            path=path,
            step=step,
            key=key or b"",
            has_key=key is not None,
            sequence=sequence,
            port=self.source_port,
            input=data,
            encoding=encoding,
            preview=preview(message),
            error=_clean(_told(finding).removeprefix(f"{step}: ")),
            traceback=_clean(trace),
            timestamp_ms=self._time_of(sequence),
        )
        self.letters.append(letter.SerializeToString())
        self.sequences.append(sequence)
        self.counts[path] = self.counts.get(path, 0) + 1

    def skip(
        self,
        skip: pb.Skip,
        path: str,
        step: str,
        message: Any,
        sequence: int,
        *,
        key: bytes | None = None,
        is_payload: bool = False,
    ) -> None:
        """Make a dead letter of a message that is skipped, because a worker process ended on it before."""
        self.put(Diagnostic(skip.code, skip.reason, ""), path, step, message, sequence, key=key, is_payload=is_payload)

    def refuses(self, at: ExitNode, message: Any, sequence: int, size: int, *, key_size: int = 0) -> bool:
        """Return whether a message with its key is too large to leave a stage. If it is, make a dead letter."""
        if size + key_size <= MAX_VALUE_BYTES:
            return False
        self.put(too_large(at.name, size, key_size), at.path, at.name, message, sequence)
        return True

    def unread(self, unread: Unread, path: str, step: str, sequence: int, key: bytes) -> None:
        """Make a dead letter of a message that cannot be deserialized."""
        finding = Diagnostic(unread.code, unread.reason, "")
        self.put(finding, path, step, unread.data, sequence, key=key, is_payload=True)

    def _input(self, message: Any) -> tuple[int, bytes]:
        try:
            encoding, _, data = self._codec.encode([self._codec.freeze(message)])
        except BaseException:
            # The input cannot be written: the letter is written without it. The preview still shows the message.
            return PLAIN, b""
        return encoding, data


def too_large(step: str, size: int, key_size: int = 0, split: str = SPLIT) -> Diagnostic:
    """Return C525 for a value or key that is too large; `split` is the hint for a value."""
    is_key = key_size > MAX_VALUE_BYTES // 2
    what, most = ("its key", key_size) if is_key else ("its value", size)
    hint = "let the partition function return a shorter key, e.g. a digest" if is_key else split
    return Diagnostic.of("C525", step=step, what=what, size=most, limit=MAX_VALUE_BYTES, hint=hint)


def preview(message: Any) -> str:
    """Return a message in readable form, at most 200 characters, without addresses of memory."""
    is_flat = isinstance(message, (str, bytes))
    try:
        text = repr(message[:PREVIEW_CHARACTERS] if is_flat else message)
        if not is_flat and ADDRESS.search(text):
            text = f"{type(message).__name__} {shown_json(message).decode()}"
    except BaseException as err:
        text = f"<{type(message).__name__} whose repr fails: {type(err).__name__}>"
    text = _clean(text)
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 1] + "…"


def _told(finding: Diagnostic) -> str:
    """Return the error text of a dead letter. For C504 it includes the remedy, because the catalogue has none."""
    return f"{finding.message}; {finding.fix}" if finding.code == "C504" and finding.fix else finding.message


def _not_serializable(step: str, message: Any, error: BaseException) -> Diagnostic:
    fix = f"use classes of a module's top level, {REMEDY}" if is_refused(message, one_line(error)) else ""
    return Diagnostic.of("C504", step=step, type=type(message).__name__, error=reason_of(message, error), fix=fix)


def _clean(text: str) -> str:
    # Protobuf refuses lone surrogates, which a repr or an error text may contain.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
