"""Makes the messages of a generator source."""

from collections.abc import Callable
from typing import Any

from wallaroo.component.application import Source
from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo.diagnostic.location import one_line, user_traceback
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.value.letter_box import MAX_VALUE_BYTES, too_large
from wallaroo.worker.value.result import present
from wallaroo.worker.value.unpicklable import REMEDY, reason_of
from wallaroo.worker.value.value import ValueCodec

SMALLER = "let the generator return smaller messages"


def generate(source: Source, codec: ValueCodec, request: pb.GenerateRequest, reply: pb.GenerateReply) -> None:
    """Add the next messages of a generator source to a reply. After an error, the reply has the messages before it.

    Raises:
        DiagnosticError: User code failed (C501), the last message cannot be read back (C505), or a message cannot be
            serialized (C504) or is too large (C525).
    """
    assert source.generator is not None
    apply, message, size = source.generator.apply, None, 0
    if not request.begins:
        message = _asked(source, "C505", _previous, codec, request)
    is_first = request.begins
    while True:
        message = _asked(source, "C501", *((source.generator.initial_value,) if is_first else (apply, message)))
        is_first = False
        message = _asked(source, "C501", present, message)
        if message is None:
            reply.ended = True
            return
        value = _asked(source, "C504", codec.dump, message)
        if len(value) > MAX_VALUE_BYTES:
            raise DiagnosticError([too_large(source.name, len(value), split=SMALLER)])
        reply.values.append(value)
        size += len(value)
        if len(reply.values) >= request.max_count or size >= request.max_bytes:
            return


def _previous(codec: ValueCodec, request: pb.GenerateRequest) -> Any:
    return codec.loader(request.previous_encoding or codec.encoding)(request.previous)


def _asked(source: Source, code: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except BaseException as err:
        raise _failed(source, code, arguments[0] if arguments else None, err) from err


def _failed(source: Source, code: str, message: Any, error: BaseException) -> DiagnosticError:
    fix = f"use classes of a module's top level, {REMEDY}"
    values = {"type": type(message).__name__, "fix": fix} if code == "C504" else {}
    trace = user_traceback(error)
    reason = reason_of(message, error) if code == "C504" else one_line(error)
    return DiagnosticError(
        [Diagnostic.of(code, step=source.name, error=reason, traceback=trace, **values)]  # type: ignore[arg-type]
    )
