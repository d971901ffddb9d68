"""Keeps secrets out of topologies: in their place is `${env:NAME}`, and the value is looked up where it is needed.

What a program has declared is remembered in this process, which hands it to those that connect. The document of an
archive or a checkpoint has references alone: the environment of the driver has the values.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wallaroo_runtime.errors import USAGE, RunError

REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
FILE = "_FILE"  # a variable NAME_FILE names a file with the value
COOKIE = "cookie"
_WORDS = "password|passwd|passphrase|pwd|secret|token|credential|signature|(access|account|api|private|shared)[._-]?key"
# Options by name; those that say where something is are none.
_NAME = re.compile(rf"{_WORDS}|jaas|oauthbearer[._-]?config|user[._-]?info|ssl\.key(\.pem|store\.key)?$", re.IGNORECASE)
_PLACE = re.compile(r"\.(location|endpoint\.url|file|path)$", re.IGNORECASE)
# Values that have one: a URL with user and password, or a list of settings.
_VALUE = re.compile(rf"://[^/@\s]*:[^/@\s]*@|({_WORDS})[\w.-]*\s*=", re.IGNORECASE)
_declared: dict[str, str] = {}


def is_secret(option: str, value: str) -> bool:
    """Say whether an option of a source or sink has a secret, and not only a reference to one.

    Example:
        >>> [is_secret(*option) for option in (
        ...     ("kafka.sasl.password", "x"), ("kafka.sasl.password", "${env:X}"), ("kafka.ssl.key.location", "/k.pem"),
        ...     ("url", "jdbc:postgresql://me:word@host/x"), ("url", "jdbc:postgresql://host/x"))]
        [True, False, False, True, False]
    """
    if not value or REFERENCE.search(value):
        return False
    return bool(_NAME.search(option) and not _PLACE.search(option)) or bool(_VALUE.search(value))


def withheld(document: Any) -> tuple[Any, dict[str, str]]:
    """Return a document with references in place of secrets, and the secrets by the names of their variables.

    A variable has the name of its option; options of different values have those of their sources and sinks, too.
    """
    found = defaultdict[str, dict[str, list[tuple[dict[str, Any], str]]]](lambda: defaultdict(list))
    document = _copied(document)
    for end in _ends(document):
        for options, option, value in _secrets(end):
            found[option][value].append((options, str(end.get("name", ""))))
    values: dict[str, str] = {}
    for option, by_value in found.items():
        for value, places in by_value.items():
            for options, end_name in places:
                name = _variable(option if len(by_value) == 1 else f"{end_name}_{option}")
                name = _free(name, value, values)
                values[name], options[option] = value, f"${{env:{name}}}"
    return document, values


def _free(name: str, value: str, taken: Mapping[str, str]) -> str:
    """Return a name that no other value has: two sources may have equal names."""
    number, found = 1, name
    while taken.get(found, value) != value:
        number += 1
        found = f"{name}_{number}"
    return found


def _copied(document: Any) -> Any:
    """Return a document whose sources and sinks may be changed; what is no document stays as it is."""
    if isinstance(document, dict):
        return {name: _copied(value) for name, value in document.items()}
    return [_copied(value) for value in document] if isinstance(document, list) else document


def _ends(document: Any) -> Iterator[dict[str, Any]]:
    pipelines = document.get("pipelines") if isinstance(document, dict) else None
    for pipeline in pipelines if isinstance(pipelines, list) else ():
        for kind in ("sources", "sinks"):
            ends = pipeline.get(kind) if isinstance(pipeline, dict) else None
            yield from (end for end in ends if isinstance(end, dict)) if isinstance(ends, list) else ()


def _secrets(end: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    cookie, options = end.get(COOKIE), end.get("options")
    if isinstance(cookie, str) and cookie and not REFERENCE.search(cookie):
        yield end, COOKIE, cookie
    if isinstance(options, dict):
        texts = {option: value for option, value in options.items() if isinstance(value, str)}
        yield from ((options, option, value) for option, value in texts.items() if is_secret(option, value))


def _variable(text: str) -> str:
    return "WALLAROO_" + re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")


def declare(document: Any) -> Any:
    """Return the document of a program with references in place of its secrets, which `resolved` finds from now on."""
    document, values = withheld(document)
    _declared.update(values)
    return document


def without_secrets(document: Any) -> Any:
    """Return any document with references; its secrets count where nothing else gives a value."""
    document, values = withheld(document)
    for name, value in values.items():
        if name not in os.environ and name + FILE not in os.environ:
            _declared.setdefault(name, value)
    return document


def references(document: Any) -> list[str]:
    """Return the variables to which sources and sinks of a document refer, sorted."""
    texts = (text for end in _ends(document) for text in (end.get(COOKIE) or "", *(end.get("options") or {}).values()))
    return sorted({name for text in texts for name in REFERENCE.findall(text)})


def resolved(options: Mapping[str, str]) -> dict[str, str]:
    """Return options with the values in place of references.

    Raises:
        RunError: R616, a file with a value cannot be read; R608, there is no value.
    """
    return {option: value_of(text) for option, text in options.items()}


def value_of(text: str) -> str:
    """Return a text with the values in place of references; raises as `resolved`."""
    return REFERENCE.sub(lambda found: _value(found[1]), text)


def _value(name: str) -> str:
    if name in _declared:
        return _declared[name]
    if name in os.environ:
        return os.environ[name]
    file = os.environ.get(name + FILE)
    if file is None:
        reason = f"the application needs {name}, which is kept out of what is packed, stored and printed"
        fix = f"set the variable {name} for this command, or {name}{FILE} to the path of a file that has the value"
        raise RunError.of("R608", USAGE, reason=reason, fix=fix)
    try:
        return Path(file).read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError.of(
            "R616", USAGE, path=file, done="read", reason=getattr(error, "strerror", None) or str(error)
        ) from error
