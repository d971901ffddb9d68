"""Keeps secrets out of topologies: replaces them by `${env:NAME}`, and looks up the value where it is needed.

This process remembers the secrets that a program has declared, for its sources and sinks. Documents in archives and
checkpoints have only references. If a document was read from there, the driver's environment must have the values.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wallaroo_runtime.errors import USAGE, RunError

REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
FILE = "_FILE"  # the variable NAME_FILE may name a file with the value
COOKIE = "cookie"
_WORDS = (
    "password|passwd|passphrase|pwd|secret|token|credential|signature"
    "|(access|account|api|encryption|master|private|shared|signing)[._-]?key"
)
# Names of options with secrets. Options with the place of a file or server are excluded.
_NAME = re.compile(rf"{_WORDS}|jaas|oauthbearer[._-]?config|user[._-]?info|ssl\.key(\.pem|store\.key)?$", re.IGNORECASE)
_PLACE = re.compile(r"\.(location|endpoint\.url|file|path)$", re.IGNORECASE)
# Words that mean a secret only at the end of a name, unless the value is a switch: "db.pass", "azureSas".
_LAST = r"auth|authorization|bearer|cookies?|creds|jwt|oauth2?|pass|passcode|pat|pw|sas"
_SWITCH = re.compile(r"true|false|none|no|yes|\d", re.IGNORECASE)
# Values that contain a secret, for any name of the option.
_VALUE = re.compile(
    rf"://[^/@\s]*:[^/@\s]*@|https?://[^/@\s:\0]+@"  # a URL with user and password, or with a token
    rf"|({_WORDS})[\w.-]*([\"']?\s*=|[\"']\s*:|:\s|>[^<])"  # settings, JSON, YAML, XML
    rf"|[?&;](sig|key|code|{_LAST})=[^&]"  # parameters of a URL
    r"|\b(proxy-)?authorization[\"']?\s*[=:]\s*\S|\bbearer\s+[\w.~+/-]|^basic\s+[\w+/=-]+$"  # headers
    r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY"
    r"|\beyJ[\w-]+\.eyJ[\w-]+\.|\b(gh[opsur]_|github_pat_|xox[a-z]-|dapi)\w{16}",  # tokens of a known form
    re.IGNORECASE,
)
# A reference in the place of a secret, with the words before it.
_REFERRED = re.compile(rf"[=:>]?\s*[\"']?((bearer|basic)\s+)?{REFERENCE.pattern}", re.IGNORECASE)
_HIDDEN = 6  # least number of characters to hide, since shorter values are too often parts of words
_declared: dict[str, str] = {}  # secrets of programs, which override the environment
_written: dict[str, str] = {}  # secrets of documents, which the environment overrides
_used: dict[str, str] = {}  # values of references that were looked up


def is_secret(option: str, value: str) -> bool:
    """Say whether an option of a source or sink contains a secret, and not only a reference to a secret.

    Example:
        >>> [is_secret(*option) for option in (
        ...     ("kafka.sasl.password", "x"), ("kafka.sasl.password", "${env:X}"), ("kafka.ssl.key.location", "/k.pem"),
        ...     ("url", "jdbc:postgresql://me:word@host/x"), ("url", "jdbc:postgresql://host/x"))]
        [True, False, False, True, False]
    """
    if not value:
        return False
    if REFERENCE.search(value):
        return bool(_VALUE.search(_REFERRED.sub("\0", value)))
    is_named = bool(_NAME.search(option)) or bool(_last_of(option) and not _SWITCH.fullmatch(value))
    return (is_named and not _PLACE.search(option)) or bool(_VALUE.search(value))


def _last_of(option: str) -> bool:
    """Say whether the last word of an option's name means a secret. A sign or a capital letter begins a new word."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+2?", option)
    return bool(words and re.fullmatch(_LAST, words[-1], re.IGNORECASE))


def secret_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Yield each argument of a program that looks like a secret: its name, or its position if it has no name.

    Example:
        >>> [*secret_arguments(["--db-password=x", "--token", "x", "-v", "--quick=1", "amqp://me:word@host"])]
        ['--db-password', '--token', 'number 6']
    """
    before = ""
    for number, argument in enumerate(arguments, 1):
        name, equals, value = argument.partition("=")
        if argument.startswith("-") and not equals:
            before = name
            continue
        if not (equals and re.fullmatch(r"-{0,2}[A-Za-z][\w.-]*", name)):
            name, value = before, argument
        before = ""
        if is_secret(name.lstrip("-"), value):
            yield name or f"number {number}"


def withheld(document: Any) -> tuple[Any, dict[str, str]]:
    """Return a document with references `${env:NAME}` in place of secrets, and the secrets by NAME.

    NAME is made from the option's name. If an option has several values, the name of the source or sink is in front.
    """
    secrets = defaultdict[str, dict[str, list[tuple[dict[str, Any], str]]]](lambda: defaultdict(list))
    document = _copied(document)
    for end in _ends(document):
        for options, option, value in _secrets(end):
            secrets[option][value].append((options, str(end.get("name", ""))))
    values: dict[str, str] = {}
    for option, by_value in secrets.items():
        for value, places in by_value.items():
            for options, end_name in places:
                name = variable_of(option if len(by_value) == 1 else f"{end_name}_{option}")
                name = free_name(name, value, values)
                values[name], options[option] = value, f"${{env:{name}}}"
    return document, values


def free_name(name: str, value: str, taken: Mapping[str, str]) -> str:
    """Return `name`, with a number added if the name is taken for another value."""
    number, free = 1, name
    while taken.get(free, value) != value:
        number += 1
        free = f"{name}_{number}"
    return free


def _copied(document: Any) -> Any:
    """Return a deep copy of a document, so that its sources and sinks can be changed."""
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


def variable_of(text: str) -> str:
    """Return the name of the environment variable for an option or another text."""
    return "WALLAROO_" + re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")


def declare(document: Any) -> Any:
    """Return a program's document with references in place of secrets, and remember the secrets for `resolved`."""
    document, values = withheld(document)
    _declared.update(values)
    return document


def without_secrets(document: Any) -> Any:
    """Replace secrets in a document from a checkpoint or a person by references, and remember the secrets.

    The environment overrides these secrets, but not those of `declare`.
    """
    document, values = withheld(document)
    for name in values:
        _declared.pop(name, None)  # an application that was loaded earlier may have declared it
    _written.update(values)
    return document


def references(document: Any) -> list[str]:
    """Return the sorted names of the variables to which sources and sinks of a document refer."""
    texts = (text for end in _ends(document) for text in (end.get(COOKIE) or "", *(end.get("options") or {}).values()))
    return sorted({name for text in texts for name in REFERENCE.findall(text)})


def resolved(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a source or sink with values in place of references.

    Raises:
        RunError: R616 if a file with a value cannot be read, R608 if there is no value.
    """
    return {option: value_of(text) for option, text in options.items()}


def value_of(text: str) -> str:
    """Return a text with values in place of references. Raises the errors of `resolved`."""
    return REFERENCE.sub(lambda found: _value(found[1]), text)


def check_secrets(document: Any) -> None:
    """Refuse a document that refers to variables without a value. Called before any process is started.

    Raises:
        RunError: See `resolved`. R608 names all variables without a value.
    """
    names = references(document)
    known_names = {*os.environ, *_declared, *_written}
    if missing := [name for name in names if not {name, name + FILE} & known_names]:
        raise _lacking(missing)
    for name in names:
        _value(name)


def _lacking(names: Sequence[str]) -> RunError:
    if names[1:]:
        reason = f"the application needs {', '.join(names)}, which are kept out of what is packed, stored and printed"
        fix = (
            f"set these variables for this command, or {names[0]}{FILE} and so on to the paths of files with the values"
        )
    else:
        reason = f"the application needs {names[0]}, which is kept out of what is packed, stored and printed"
        (name,) = names
        fix = f"set the variable {name} for this command, or {name}{FILE} to the path of a file that has the value"
    return RunError.of("R608", USAGE, reason=reason, fix=fix)


def _value(name: str) -> str:
    text = _declared.get(name)
    if text is None and (value := _of_environment(name)) is not None:
        _used[name] = value
        return value
    text = _written.get(name) if text is None else text
    if text is None:
        raise _lacking([name])
    _used[name] = REFERENCE.sub(lambda inner: _needed(inner[1]), text)  # a part of the value may be a reference
    return _used[name]


def _needed(name: str) -> str:
    text = _of_environment(name)
    if text is None:
        raise _lacking([name])
    return text


def _of_environment(name: str) -> str | None:
    if name in os.environ:
        return os.environ[name]
    file = os.environ.get(name + FILE)
    if file is None:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError.of(
            "R616", USAGE, path=file, done="read", reason=getattr(error, "strerror", None) or str(error)
        ) from error


def hidden(text: str) -> str:
    """Return a text, e.g. Spark's error about a path, with references in place of the secrets that were looked up.

    Example:
        >>> _used["P"] = "ftp://me:word@host"
        >>> hidden("no such file: ftp://me:word@host/x")
        'no such file: ${env:P}/x'
        >>> _ = _used.pop("P")
    """
    for name, value in sorted(_used.items(), key=lambda used: -len(used[1])):  # longer values first
        if len(value) >= _HIDDEN:
            text = text.replace(value, f"${{env:{name}}}")
    return text
