"""Checks the arguments of a test's calls: names of sources, sinks and states, payloads, and keys."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.message.key import state_key
from wallaroo.message.memory_message import Message
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.gateway.framing import KINDS, Splitter, misfit
from wallaroo_runtime.topology.model import Sink, Source, TcpSource

P = TypeVar("P", Source, Sink)


def chosen(what: str, parts: list[P], name: str | int) -> P:
    """Return the source or sink with this name or position. If `name` is empty, return the only one.

    Args:
        what: `source` or `sink`, for the error.

    Raises:
        RunError: R720 if there is no such source or sink, or more than one.
    """
    name = str(name)
    matching = [part for part in parts if not name or part.name == name]
    if name.isdecimal() and not matching and int(name) < len(parts):
        matching = [parts[int(name)]]
    if len(matching) > 1:
        listed = ", ".join(f'"{at}" (of "{part.name}")' for at, part in enumerate(parts) if part in matching)
        raise _missing("single " + what, name, listed)
    if not matching:
        raise unknown(what, name, [part.name for part in parts])
    return matching[0]


def unknown(what: str, name: str, known: Iterable[str]) -> RunError:
    """Return the error that the application has no source, sink, state or visit with this name (R720)."""
    return _missing(what, name, ", ".join(f'"{each}"' for each in known) or "none")


def _missing(what: str, name: str, known: str) -> RunError:
    shown = f'"{name}"' if name else "of this name"
    return RunError.of("R720", USAGE, place="the application", what=what, name=shown, known=known)


def refused(source: Source, value: str, reason: str, fix: str) -> RunError:
    """Return the error that a source does not accept a message (R721)."""
    return RunError.of("R721", USAGE, place=f'source "{source.name}"', value=value, reason=reason, fix=fix)


def check_payloads(
    source: TcpSource, messages: Sequence[Message], splitter: Callable[[TcpSource], Splitter]
) -> list[bytes]:
    """Check that a TCP source could receive these messages with its framing, and return their payloads.

    Args:
        splitter: Returns the splitter of a source whose framing only the decoder knows. Payloads for such a source
            include the header.

    Raises:
        RunError: R721 if a payload does not fit, or has a key or time; or an error that the decoder raised.
    """
    kind, header = source.framing.kind, source.framing.header_bytes
    cut = splitter(source).split if kind not in KINDS else None
    for message in messages:
        payload = message.value
        reason, fix = misfit(kind, payload) if cut is None else "", "send what its framing can have"
        if message.key or message.time_ms is not None:
            reason, fix = "over TCP a message has neither key nor time", "send the payload alone"
        if cut is not None and (len(payload) < header or cut(payload)[0] != [len(payload)]):
            reason = f"it is not one message; those of its decoder class begin with a header of {header} bytes"
            fix = "send header and payload in one, as they come over the wire; or objects, as the decoder gives them"
        if reason:
            raise refused(source, shown(payload), reason, fix)
    return [message.value for message in messages]


def key_of(key: object) -> bytes:
    """Return the bytes of a key that a test passes as text, bytes, number or tuple.

    Raises:
        RunError: T207 if the value is not a key.
    """
    try:
        return state_key(key)
    except (TypeError, ValueError) as error:
        expected = "a key: a text, bytes, a number, or a tuple of them"
        values = {"method": "state", "parameter": "key", "actual": shown(key), "expected": expected}
        raise RunError.of("T207", USAGE, **values, fix=f"pass {expected}") from error
