"""TCP sources and sinks, and the options that give their addresses."""

import argparse
from collections.abc import Sequence
from typing import Any

from wallaroo.diagnostic import Diagnostic, shown
from wallaroo.error import WallarooParameterError
from wallaroo.location import called_from


class TCPSourceConfig:
    """A listener to which senders connect.

    Args:
        host: Host name or address to listen at.
        port: Port as text or number; 0 lets the system choose.
        decoder: Object (or class) with `header_length()`, `payload_length(bs)` and `decode(bs)`.
        on_error: What happens when it fails on a message, as for `ApplicationBuilder`; None: what the application says.

    Source: Wallaroo 0.1 to 0.5.
    """

    def __init__(self, host: str, port: str | int, decoder: Any, *, on_error: str | None = None) -> None:
        self.host, self.port, self.decoder, self.on_error = host, port, decoder, on_error
        self.location = called_from()


class TCPSinkConfig:
    """A receiver to which output is sent.

    Args:
        host: Host name or address to connect to.
        port: Port as text or number.
        encoder: Object (or class) with `encode(data)`.
        on_error: What happens when it fails on a message, as for `ApplicationBuilder`; None: what the application says.

    Source: Wallaroo 0.1 to 0.5.
    """

    def __init__(self, host: str, port: str | int, encoder: Any, *, on_error: str | None = None) -> None:
        self.host, self.port, self.encoder, self.on_error = host, port, encoder, on_error
        self.location = called_from()


def tcp_parse_input_addrs(args: Sequence[str]) -> list[tuple[str, str]]:
    """Return the addresses of `-i/--in HOST:PORT,...` as (host, port) pairs of text.

    Example:
        >>> tcp_parse_input_addrs(["wallaroo", "--in", "127.0.0.1:7010,127.0.0.1:7011"])
        [('127.0.0.1', '7010'), ('127.0.0.1', '7011')]
    """
    return _addresses("source", "-i", "--in", args)


def tcp_parse_output_addrs(args: Sequence[str]) -> list[tuple[str, str]]:
    """Return the addresses of `-o/--out HOST:PORT,...` as (host, port) pairs of text.

    Example:
        >>> tcp_parse_output_addrs(["wallaroo", "--out", "127.0.0.1:7002"])
        [('127.0.0.1', '7002')]
    """
    return _addresses("sink", "-o", "--out", args)


def split_address(text: str) -> tuple[str, str]:
    """Return host and port of `[NAME@]HOST:PORT`; an IPv6 host stands in brackets.

    Raises:
        ValueError: There is no port.
    """
    host, colon, port = text.rpartition("@")[2].rpartition(":")
    if not colon:
        msg = "it has no port"
        raise ValueError(msg)
    return host.removeprefix("[").removesuffix("]"), port


def _addresses(what: str, short: str, option: str, args: Sequence[str]) -> list[tuple[str, str]]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(short, option, dest="addresses")
    text = parser.parse_known_args(list(args))[0].addresses
    if text is None:
        raise WallarooParameterError(_finding(what, text, f"{option} is missing"))
    found, findings = [], []
    for part in text.split(","):
        try:
            found.append(split_address(part))
        except ValueError as err:
            findings.append(_finding(what, part, str(err)))
    if findings:
        raise WallarooParameterError(findings)
    return found


def _finding(what: str, value: object, reason: str) -> Diagnostic:
    return Diagnostic.of("T211", **called_from().shown()._asdict(), what=what, value=shown(value), reason=reason)
