"""Finds the parts of an application that a test names, and says which there are."""

from collections.abc import Iterable
from typing import TypeVar

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.message.key import state_key
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.topology.model import Sink, Source

P = TypeVar("P", Source, Sink)


def chosen(what: str, parts: list[P], name: str | int) -> P:
    """Return the part of a name, or of a position.

    Raises:
        RunError: R720, there is none, or more than one.
    """
    name = str(name)
    found = [part for part in parts if part.name == name] or ([part for part in parts] if not name else [])
    if name.isdecimal() and not found and int(name) < len(parts):
        found = [parts[int(name)]]
    if len(found) > 1:
        listed = ", ".join(f'"{at}" (of "{part.name}")' for at, part in enumerate(parts) if part in found)
        raise _missing("single " + what, name, listed)
    if not found:
        raise unknown(what, name, [part.name for part in parts])
    return found[0]


def unknown(what: str, name: str, known: Iterable[str]) -> RunError:
    """Return the error for a part that the application does not have."""
    return _missing(what, name, ", ".join(f'"{each}"' for each in known) or "none")


def _missing(what: str, name: str, known: str) -> RunError:
    shown = f'"{name}"' if name else "of this name"
    return RunError.of("R720", USAGE, place="the application", what=what, name=shown, known=known)


def refused(source: Source, value: str, reason: str, fix: str) -> RunError:
    """Return the error for a message that a source does not take."""
    return RunError.of("R721", USAGE, place=f'source "{source.name}"', value=value, reason=reason, fix=fix)


def key_of(key: object) -> bytes:
    """Return the bytes of a key that a test names.

    Raises:
        RunError: T207, it is none.
    """
    try:
        return state_key(key)
    except (TypeError, ValueError) as error:
        expected = "a key: a text, bytes, a number, or a tuple of them"
        values = {"method": "state", "parameter": "key", "actual": shown(key), "expected": expected}
        raise RunError.of("T207", USAGE, **values, fix=f"pass {expected}") from error
