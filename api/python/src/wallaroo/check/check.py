"""Checks names, addresses and keys, and chooses the time of steps. The runtime checks the whole application."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from wallaroo.component.application import POLICIES, Pipeline, Step
from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.error import Place
from wallaroo.diagnostic.location import Location
from wallaroo.message.key import state_key

MAX_NAME = 200
TOPIC_NAMES = "1 to 249 of the characters a-z, A-Z, 0-9, '.', '_', '-'"


def is_topic(name: str) -> bool:
    """Return whether Kafka accepts the name for a topic."""
    return bool(re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name)) and name not in (".", "..")


def name(place: Place, what: str, value: Any) -> str:
    """Return a name as text; record T210 if it is not valid."""
    reason = ""
    if not isinstance(value, str):
        reason = f"it is {type(value).__name__}, not str"
    elif not 1 <= len(value) <= MAX_NAME:
        reason = f"it has {len(value)} characters"
    elif any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        reason = "it has control characters"
    elif not unicodedata.is_normalized("NFC", value):
        reason = "it is not in Unicode form NFC"
    if reason:
        place.add("T210", what=what, name=shown(value), reason=reason)
    return str(value)


def is_start(value: object) -> bool:
    """Return whether a text says at which record to begin: "start", "end", an offset, or "-n" (n before the end)."""
    return isinstance(value, str) and re.fullmatch(r"start|end|-[1-9][0-9]*|0|[1-9][0-9]*", value) is not None


def policy(place: Place, value: Any) -> str:
    """Return the policy `on_error`, or an empty text for None; record T207 for an unknown policy."""
    return choice(place, "on_error", value, POLICIES)


def choice(place: Place, parameter: str, value: Any, known: Sequence[str]) -> str:
    """Return `value` if it is one of the known texts, or an empty text for None. Record T207 for other values."""
    if value is None or value in known:
        return value or ""
    names = " or ".join(f'"{name}"' for name in known)
    place.wrong(parameter, shown(value), names)
    return ""


def address(place: Place, what: str, host: Any, port: Any, location: Location) -> tuple[str, int]:
    """Return host and port number; record T211 if they are not valid."""
    reason = ""
    number = -1
    if not isinstance(host, str) or not 1 <= len(host) <= 253:
        reason = f"host {shown(host)} is not a name of 1 to 253 characters" if host else "the host is missing"
    elif any(sign.isspace() or not sign.isprintable() or sign in "/@," for sign in host):
        reason = "no host has such characters"
    try:
        number = int(port) if isinstance(port, (str, int)) else -1
    except ValueError:
        number = -1
    if not reason and not 0 <= number <= 65535:
        reason = f"port {shown(port)} is not a number of 0 to 65535"
    if reason:
        place.add("T211", location, what=what, value=shown(f"{host}:{port}"), reason=reason)
    return str(host), number


def keys(place: Place, state: str, values: Any) -> tuple[Any, ...]:
    """Return the valid keys of a declared list; record T207 for each invalid one."""
    if isinstance(values, (str, bytes, dict)) or not isinstance(values, Iterable):
        place.wrong("partition_keys", shown(values), "a list of keys", fix='pass a list, e.g. ["a", "b"]')
        return ()
    declared = []
    for number, key in enumerate(values):
        try:
            state_key(key)
        except (TypeError, ValueError) as err:
            kind = type(key).__name__ if isinstance(err, TypeError) else str(err)
            expected = "str, bytes or numbers, or tuples of them"
            place.wrong(f'partition_keys[{number}] of state "{state}"', f"{shown(key)} ({kind})", expected)
        else:
            declared.append(key)
    return tuple(declared)


def settle_times(pipelines: list[Pipeline]) -> None:
    """Choose the time for timers and time to live of each step: event time, or ingest time (time of arrival).

    Steps with the same state use the same time. It is event time if all sources upstream of these steps provide it.
    """
    gives = {source.path: source.gives_time for line in pipelines for source in line.sources}
    of_data: dict[str, bool] = {}
    timed: list[tuple[Step, str]] = []
    for step in (step for line in pipelines for step in line.steps):
        gives[step.path] = bool(step.inputs) and all(gives.get(each, False) for each in step.inputs)
        if step.state is not None and (step.timers or step.state.ttl_ms):
            timed.append((step, step.state.name))
            of_data[step.state.name] = of_data.get(step.state.name, True) and gives[step.path]
    for step, state in timed:
        step.time = "event" if of_data[state] else "ingest"


def open_end(pointer: str, at: Location, name: str, last: str) -> Diagnostic:
    """Return the finding (T204) that a pipeline ends after the part `last`, without a sink."""
    file, line = at.shown()
    end = f'end after "{last}"'
    return Diagnostic.of("T204", pointer=pointer, file=file, line=line, what="pipeline", name=name, end=end)
