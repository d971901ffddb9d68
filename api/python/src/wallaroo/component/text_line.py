"""Lines over TCP: a decoder of lines and an encoder of lines, e.g. for `nc` and for JSON lines."""

from collections.abc import Callable
from typing import Any, overload

from wallaroo.component.wrapped import Encoder, EventTime, P, R, ValueDecoder
from wallaroo.message.framing import NEWLINE


class LineDecoder(ValueDecoder[P, R]):
    """Turns a line into a message; made by `line_decoder`, with the same parameters.

    Attributes:
        framing: "newline", so that a TCP source cuts its stream into lines. The decoder class of a program may have
            this attribute, too.

    Example:
        >>> LineDecoder(bytes.decode).decode(b"abc")
        'abc'
    """

    kind = "line_decoder"
    framing = NEWLINE


class LineEncoder(Encoder[P, R]):
    r"""Turns a message into a line; made by `line_encoder`. Parameters are as for `BaseWrapped`.

    Example:
        >>> LineEncoder(str.upper).encode("abc")
        b'ABC\n'
    """

    kind = "line_encoder"
    is_direct = False

    def encode(self, data: Any) -> bytes | None:
        """Return the line of a message with its line break, or None to send nothing.

        Raises:
            TypeError: The function returns a value that is not bytes, str or None.
            ValueError: The line contains a line break.
        """
        line = self.function(data)
        if line is None:
            return None
        if not isinstance(line, (bytes, str)):
            msg = f"{self.name()} returns {type(line).__name__}; expected bytes, str or None"
            raise TypeError(msg)
        encoded = line.encode() if isinstance(line, str) else line
        if b"\n" in encoded:
            msg = "there is a line break in the line: a reader would take it for two"
            raise ValueError(msg)
        return encoded + b"\n"


@overload
def line_decoder(function: Callable[P, R], *, event_time: EventTime | None = None) -> LineDecoder[P, R]: ...


@overload
def line_decoder(*, event_time: EventTime | None = None) -> Callable[[Callable[P, R]], LineDecoder[P, R]]: ...


def line_decoder(function: Any = None, *, event_time: EventTime | None = None) -> Any:
    """Make a function `f(bs)` a decoder of lines: it gets a line without LF or CR LF, returns a message or None.

    A TCP source with this decoder cuts its stream at line breaks. The end of the connection ends the last line, too.
    Empty lines are messages. A line has at most 16 MiB. A longer line closes its connection (R606).

    Args:
        function: Takes the bytes of a line.
        event_time: Takes the bytes of a line and returns the time of the message in milliseconds since 1970, which
            windows and timers use. If it fails, the message is a dead letter (C505).

    Raises:
        WallarooParameterError: T207 if `function` or `event_time` cannot be called.

    Example:
        >>> import json
        >>> @line_decoder
        ... def order(bs):
        ...     return json.loads(bs) if bs else None
        >>> order.decode(b'{"amount": 3}')
        {'amount': 3}
        >>> @line_decoder(event_time=lambda bs: 1000 * json.loads(bs)["second"])
        ... def reading(bs):
        ...     return json.loads(bs)["value"]
        >>> line = b'{"second": 7, "value": 3}'
        >>> reading.decode(line), reading.event_time(line)
        (3, 7000)
    """

    def wrap(function: Callable[P, R]) -> LineDecoder[P, R]:
        return LineDecoder(function, event_time=event_time)

    return wrap if function is None else wrap(function)


def line_encoder(function: Callable[P, R]) -> LineEncoder[P, R]:
    r"""Make a function `f(data)` an encoder of lines: it returns bytes or str without a line break, or None.

    Args:
        function: Takes a message. If the result contains a line break, the message is a dead letter (C501).

    Raises:
        WallarooParameterError: T207 if `function` cannot be called.

    Example:
        >>> import json
        >>> @line_encoder
        ... def total(data):
        ...     return json.dumps({"total": data})
        >>> total.encode(7)
        b'{"total": 7}\n'
    """
    return LineEncoder(function)
