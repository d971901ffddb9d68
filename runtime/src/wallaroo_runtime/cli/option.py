"""Splits the command line of `run` and `emit` into the runtime's and the application's arguments.

Programs written for Wallaroo read their own options from the arguments that the runtime leaves, and many stop at an
unknown option. So options of the runtime, and former options of Wallaroo, are removed; `--in` and `--out` stay visible.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from wallaroo.diagnostic.diagnostic import closest
from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.cli.run_option import OWN, SUBMIT, VISIBLE

MODULE = "--application-module"  # precedes APP on the original Wallaroo's command lines
# Options of Pony's runtime, which every program of Wallaroo takes, and of Wallaroo's sender.
PONY = {
    **dict.fromkeys(("--ponythreads", "--ponyminthreads", "--ponymaxthreads"), True),
    **dict.fromkeys(("--ponypin", "--ponynopin", "--ponypinasio", "--ponynoblock", "--ponynoyield"), False),
}
SENDER = {**PONY, "--no-write": False, "-w": False, "--vary-by": True, "--partition": True}
# Options of the original Wallaroo: addresses of its parts, its cluster, its files, fault injection, Pony's options.
WITHOUT_EFFECT = {
    **dict.fromkeys(
        ("--metrics", "-m", "--control", "-c", "--data", "-d", "--my-control", "-x", "--my-data", "-y"), True
    ),
    **dict.fromkeys(("--external", "-e", "--file", "-f", "--worker-count", "-w", "--join", "-j"), True),
    **dict.fromkeys(("--name", "-n", "--worker-name"), True),
    **dict.fromkeys(("--cluster-initializer", "-t", "--log-rotation", "--run-with-resilience"), False),
    **dict.fromkeys(("--resilience-dir", "-r", "--event-log-file-size", "-l", "--stop-pause", "-u"), True),
    **dict.fromkeys(("--time-between-checkpoints", "--resilience-dos-server", "--phone-home", "-p"), True),
    **dict.fromkeys(("--resilience-no-local-file-io", "--resilience-enable-io-journal", "--spike-drop"), False),
    **dict.fromkeys(("--spike-seed", "--spike-prob", "--spike-margin"), True),
    **PONY,
}


@dataclass
class Split:
    """A command line, split into the command's own arguments and those for the application.

    Attributes:
        without_effect: Options that were removed, because they belong to Wallaroo itself or to another command.
        suspicious: Options for the application that resemble an option of ours, each with our option.
        of_submit: Options for the application that are those of `submit`.
    """

    own: list[str] = field(default_factory=list)
    app: list[str] = field(default_factory=list)
    without_effect: list[str] = field(default_factory=list)
    suspicious: list[tuple[str, str]] = field(default_factory=list)
    of_submit: list[str] = field(default_factory=list)


def split(tokens: list[str], used: frozenset[str]) -> Split:
    """Split a command line into the arguments of the command and those of the application.

    Args:
        tokens: The words after the command's name.
        used: The options of `OWN` that this command has. Other options of `OWN` are removed.

    Example:
        >>> parts = split(["app.py", "--in", ":7010", "--metrics", "h:1", "--depth", "3"], frozenset())
        >>> parts.own, parts.app, parts.without_effect
        (['app.py', '--in', ':7010'], ['--in', ':7010', '--depth', '3'], ['--metrics'])
    """
    result = Split()
    known = {**OWN, **VISIBLE, **WITHOUT_EFFECT}
    has_app = any(token.partition("=")[0] == MODULE for token in tokens)
    rest = iter(tokens)
    for token in rest:
        name, equals, value = token.partition("=")
        if token == "--":
            result.app += rest
        elif name == MODULE:
            result.own.append(value if equals else next(rest, ""))
        elif name in known:
            taken = [token, *islice(rest, 1 if known[name] and not equals else 0)]
            _file(result, name, taken, used)
        elif token in ("-h", "--help") and not has_app:
            result.own.append(token)
        elif not token.startswith("-") and not has_app:
            has_app = True
            result.own.append(token)
        else:
            result.app.append(token)
            if name in SUBMIT:
                result.of_submit.append(name)
            elif name[:2] == "--" and (close := closest(name, used | {"--in", "--out"}, 0.8)):
                result.suspicious.append((name, close))
    return result


def extracted(tokens: list[str], own: Mapping[str, bool]) -> tuple[list[str], list[str]]:
    """Separate some options, with their values, from the other tokens of a command line.

    Args:
        own: The options, and whether each takes a value.

    Example:
        >>> extracted(["app.py", "-o", "x", "--depth", "3"], {"-o": True})
        (['-o', 'x'], ['app.py', '--depth', '3'])
    """
    matching: list[str] = []
    rest: list[str] = []
    left = iter(tokens)
    for token in left:
        name, equals, _ = token.partition("=")
        if token == "--":
            rest += [token, *left]
        elif name in own:
            matching += [token, *islice(left, 1 if own[name] and not equals else 0)]
        else:
            rest.append(token)
    return matching, rest


def arguments_of_app(parts: Split) -> list[str]:
    """Return the arguments that only the application gets, not the command."""
    return extracted(parts.app, VISIBLE)[1]


def without_effect(tokens: list[str], ignored: Mapping[str, bool]) -> Split:
    """Separate options of the original Wallaroo, which have no effect here, from a command line.

    Args:
        ignored: The options, and whether each takes a value.

    Example:
        >>> parts = without_effect(["--ponythreads", "1", "--messages", "5", "--ponynoblock"], PONY)
        >>> parts.own, parts.without_effect
        (['--messages', '5'], ['--ponythreads', '--ponynoblock'])
    """
    matching, own = extracted(tokens, ignored)
    return Split(own=own, without_effect=[token.partition("=")[0] for token in matching if token.startswith("-")])


def _file(result: Split, name: str, taken: list[str], used: frozenset[str]) -> None:
    if name in VISIBLE:
        result.own += taken
        result.app += taken
    elif name in used:
        result.own += taken
    else:
        result.without_effect.append(name)


def tell_split(parts: Split) -> None:
    """Report to the user which options had no effect, according to a split command line.

    Raises:
        RunError: R608 if an option for the application is that of `submit`, or resembles an option of ours.
    """
    for name in parts.of_submit:
        fix = "give it to `wallaroo submit`. After -- the application sees it"
        raise wrong_usage(reason=f"{name} is an option of `wallaroo submit`", fix=fix)
    for name, other in parts.suspicious:
        fix = f"did you mean {other}? After -- the application sees it"
        raise wrong_usage(reason=f"{name} is no option of `wallaroo`", fix=fix)
    if parts.without_effect:
        print(f"note: no effect here: {', '.join(parts.without_effect)}", file=sys.stderr)
