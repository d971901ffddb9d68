"""Addresses on the command line."""

from wallaroo_runtime.errors import USAGE, RunError

MAX_PORT = 65535


def parse_address(what: str, text: str) -> tuple[str, int]:
    """Read HOST:PORT; an IPv6 host stands in brackets.

    Raises:
        RunError: T211 with exit code 2.

    Example:
        >>> parse_address("--host", "127.0.0.1:7010")
        ('127.0.0.1', 7010)
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise RunError.of("T211", USAGE, what=what, value=repr(text), reason="it is not of the form HOST:PORT")
    if not port.isascii() or not port.isdigit() or int(port) > MAX_PORT:
        raise RunError.of("T211", USAGE, what=what, value=repr(text), reason=f"{port!r} is not a port")
    return host.removeprefix("[").removesuffix("]"), int(port)
