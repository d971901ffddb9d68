"""TCP sources and sinks, and the command line options with their addresses."""

import argparse
import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

from wallaroo.check import check
from wallaroo.component import component
from wallaroo.component.application import Source
from wallaroo.component.interface import Encoding, Framing
from wallaroo.component.signature import shown_name
from wallaroo.component.wrapped import Decoder, ValueDecoder
from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.error import Place, WallarooParameterError
from wallaroo.diagnostic.location import called_from, declared_at
from wallaroo.endpoint.config import MAX_MESSAGE_BYTES, SinkConfig, SourceConfig, decode_of
from wallaroo.message.framing import NEWLINE, probe

MAX_HEADER_BYTES = 64


class TCPSourceConfig(SourceConfig):
    """A source that listens on a TCP port, to which any number of senders connect.

    There are two orders of parameters: `(host, port, decoder)`, and `(name, host, port, decoder)`.

    Args:
        name: Name of the source; None takes the pipeline's name.
        host: Host name or address to listen at.
        port: Port as text or number; 0 lets the system choose.
        decoder: Object (or class) with `header_length()`, `payload_length(bs)` and `decode(bs)`; or with `decode(bs)`
            and an attribute `framing = "newline"`, as `line_decoder` makes it. Optional is `event_time(bs)`, which
            returns the message's time in milliseconds since 1970; if it fails, the message is a dead letter (C505).
        parallelism: Has no effect, because a listener accepts any number of connections. `valid`, `max_size` and
            `max_received_count` have no effect either.
        on_error: Policy if the decoder fails, as for `ApplicationBuilder`; None takes the application's policy.

    Example:
        >>> import wallaroo
        >>> @wallaroo.decoder(header_length=4, length_fmt=">I")
        ... def decode(payload):
        ...     return payload.decode("utf-8")
        >>> TCPSourceConfig("lines", "127.0.0.1", "7010", decode).name
        'lines'

    Source: Wallaroo 0.1 to 0.6, and its unreleased version, where the name comes first.
    """

    decorator = "decoder(header_length, length_fmt)"

    @overload
    def __init__(
        self, host: str, port: str | int, decoder: Framing, parallelism: int = 10, *, name: str | None = None,
        on_error: str | None = None,
    ) -> None: ...  # fmt: skip

    @overload
    def __init__(
        self, name: str, host: str, port: str | int, decoder: Framing, valid: bool = True, parallelism: int = 10,
        max_size: int = 16384, max_received_count: int = 50, *, on_error: str | None = None,
    ) -> None: ...  # fmt: skip

    def __init__(self, *args: Any, **keywords: Any) -> None:
        is_named = len(args) > 2 and isinstance(args[2], (str, int))
        form: Callable[..., tuple[Any, ...]] = _named if is_named else _plain
        inspect.signature(form).bind(*args, **keywords)
        name, self.host, self.port, self.decoder, on_error = form(*args, **keywords)
        super().__init__(name, on_error)

    def declare(self, place: Place, path: str, name: str, decoder: Any) -> Source | None:
        """Return the declared source, or report an error at `place` and return None."""
        host, port = check.address(place, "source", self.host, self.port, self.location)
        fields: dict[str, Any] = {"host": host, "port": port}
        if getattr(decoder, "framing", None) == NEWLINE:
            return self._lines(place, path, name, decoder, fields)
        return self._framed(place, path, name, decoder, fields)

    def _lines(self, place: Place, path: str, name: str, decoder: Any, fields: dict[str, Any]) -> Source | None:
        decode = decode_of(place, decoder)
        fields |= {"framing": {"kind": NEWLINE}, "max_message_bytes": MAX_MESSAGE_BYTES}
        return None if decode is None else Source(path, name, "tcp", fields, decode)

    def _framed(self, place: Place, path: str, name: str, decoder: Any, fields: dict[str, Any]) -> Source | None:
        if isinstance(decoder, ValueDecoder) and not isinstance(decoder, Decoder):
            fix = 'write @wallaroo.decoder(header_length=4, length_fmt=">I"), or @wallaroo.line_decoder for lines'
            place.wrong("decoder", f"{shown_name(decoder)}, a decoder without a header", "one with a header", fix=fix)
            return None
        header_length = component.method(place, "decoder", decoder, ("header_length",), ())
        payload_length = component.method(place, "decoder", decoder, ("payload_length",), ("bs",))
        decode = decode_of(place, decoder)
        if header_length is None or payload_length is None or decode is None:
            return None
        size = header_length()
        if not isinstance(size, int) or not 1 <= size <= MAX_HEADER_BYTES:
            place.add(
                "T207", declared_at(decoder), method=f'source "{name}"', parameter="header_length", actual=shown(size),
                expected="1 to 64 bytes", fix="return the number of bytes that stand before each payload",
            )  # fmt: skip
            return None
        fields |= {"framing": probe(size, payload_length), "max_message_bytes": MAX_MESSAGE_BYTES}
        return Source(path, name, "tcp", fields, decode, header_length=size, payload_length=payload_length)


class TCPSinkConfig(SinkConfig):
    """A sink that connects to a TCP address and sends the output there.

    Args:
        host: Host name or address to connect to.
        port: Port as text or number.
        encoder: Object (or class) with `encode(data)`.
        on_error: Policy if the encoder fails, as for `ApplicationBuilder`; None takes the application's policy.

    Example:
        >>> import wallaroo
        >>> @wallaroo.encoder
        ... def encode(data):
        ...     return data.to_bytes(4, "big")
        >>> wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode, on_error="fail").port
        '7002'

    Source: Wallaroo 0.1 to 0.6.
    """

    def __init__(self, host: str, port: str | int, encoder: Encoding, *, on_error: str | None = None) -> None:
        super().__init__(encoder, on_error)
        self.host, self.port = host, port

    def fields(self, place: Place) -> tuple[str, dict[str, Any]]:
        """Return the kind of the sink, and its address as fields for the topology document."""
        host, port = check.address(place, "sink", self.host, self.port, self.location)
        return "tcp", {"host": host, "port": port}


class Address(tuple[str, str]):
    """Host and port of `[NAME@]HOST:PORT`, as text.

    Attributes:
        name: The name before `@`; empty if there is no name.
    """

    name: str

    def __new__(cls, host: str, port: str, name: str = "") -> "Address":
        """Make an address."""
        address = super().__new__(cls, (host, port))
        address.name = name
        return address


def tcp_parse_input_addrs(args: Sequence[str]) -> list[Address]:
    """Return the addresses of `-i/--in [NAME@]HOST:PORT,...` as (host, port) pairs of text with an attribute `name`.

    Args:
        args: The arguments of `application_setup`; other options in it are ignored.

    Raises:
        WallarooParameterError: T211 if the option is missing, or is not a list of addresses.

    Example:
        >>> tcp_parse_input_addrs(["wallaroo", "--in", "127.0.0.1:7010,127.0.0.1:7011"])
        [('127.0.0.1', '7010'), ('127.0.0.1', '7011')]
        >>> tcp_parse_input_addrs(["wallaroo", "--in", "orders@127.0.0.1:7010"])[0].name
        'orders'

    Source: Wallaroo 0.1 to 0.6.
    """
    return _addresses("source", "-i", "--in", args)


def tcp_parse_output_addrs(args: Sequence[str]) -> list[Address]:
    """Return the addresses of `-o/--out HOST:PORT,...` as (host, port) pairs of text.

    Args:
        args: The arguments of `application_setup`; other options in it are ignored.

    Raises:
        WallarooParameterError: T211 if the option is missing, or is not a list of addresses.

    Example:
        >>> tcp_parse_output_addrs(["wallaroo", "--out", "127.0.0.1:7002"])
        [('127.0.0.1', '7002')]

    Source: Wallaroo 0.1 to 0.6.
    """
    return _addresses("sink", "-o", "--out", args)


def split_address(text: str) -> tuple[str, str]:
    """Return host and port of `[NAME@]HOST:PORT`. An IPv6 host must be in brackets.

    Raises:
        ValueError: The text has no port.
    """
    host, colon, port = text.rpartition("@")[2].rpartition(":")
    if not colon:
        msg = "it has no port"
        raise ValueError(msg)
    return host.removeprefix("[").removesuffix("]"), port


def _addresses(what: str, short: str, option: str, args: Sequence[str]) -> list[Address]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(short, option, dest="addresses")
    text = parser.parse_known_args(list(args))[0].addresses
    if text is None:
        raise WallarooParameterError(_finding(what, text, f"{option} is missing"))
    addresses, findings = [], []
    for part in text.split(","):
        try:
            name, _, rest = part.rpartition("@")
            addresses.append(Address(*split_address(rest), name))
        except ValueError as err:
            findings.append(_finding(what, part, str(err)))
    if findings:
        raise WallarooParameterError(findings)
    return addresses


def _finding(what: str, value: object, reason: str) -> Diagnostic:
    return Diagnostic.of("T211", **called_from().shown()._asdict(), what=what, value=shown(value), reason=reason)


def _plain(
    host: str, port: str | int, decoder: Any, parallelism: int = 10, *, name: str | None = None,
    on_error: str | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    return name, host, port, decoder, on_error


def _named(
    name: str, host: str, port: str | int, decoder: Any, valid: bool = True, parallelism: int = 10,
    max_size: int = 16384, max_received_count: int = 50, *, on_error: str | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    return name, host, port, decoder, on_error
