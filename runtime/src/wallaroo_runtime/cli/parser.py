"""The argument parser: its errors are diagnostics with a remedy."""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from wallaroo.diagnostic.diagnostic import closest, did_you_mean
from wallaroo_runtime.cli.example import EXAMPLES
from wallaroo_runtime.errors import USAGE, RunError

MOST = 1e9  # largest amount: with more seconds a wait would overflow
# Names of positional arguments that must not be empty; keys and values may be empty.
_NAMES = {"APP", "CHECKPOINT", "CODE", "DIR", "FILE", "ID", "NAME", "NEW", "OLD", "TOPIC"}


class Parser(argparse.ArgumentParser):
    """A parser that raises R608 where argparse would print its usage and exit. It accepts no abbreviated options."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*arguments, **options)
        self._is_intermixed = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments. Positional arguments may also follow options, as in `emit TOPIC --json KEY VALUE`."""
        parsed, extras = super().parse_known_args(args, namespace)
        has_commands = any(action.nargs == argparse.PARSER for action in self._actions)
        if self._is_intermixed or has_commands or "--" in (args or ()) or all(each.startswith("-") for each in extras):
            return parsed, extras
        self._is_intermixed = True
        try:
            return self.parse_known_intermixed_args(args)
        finally:
            self._is_intermixed = False

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Return the value of an argument. Refuse an empty name, which as a path would be the current directory."""
        if not action.option_strings and "" in arg_strings and _NAMES & {*str(action.metavar).split("|")}:
            text = (action.help or "").partition(";")[0]
            fix = f"give {action.metavar}{': ' if text else ''}{text}"
            raise wrong_usage(reason=f"{self.prog}: {action.metavar} is empty", fix=fix)
        return super()._get_values(action, arg_strings)

    def format_help(self) -> str:
        """Return the help, which ends with an example."""
        help_text = super().format_help()
        return f"{help_text}\nexample: {EXAMPLES[self.prog]}\n" if self.prog in EXAMPLES else help_text

    def options(self) -> list[str]:
        """Return the names of all options of the command, e.g. to find one that resembles a wrong name."""
        return [name for action in self._actions for name in action.option_strings]

    def error(self, message: str) -> NoReturn:
        """Raise an error of argparse as an R608."""
        choice = re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
        if choice:
            what, value, known = choice.groups()
            names = [name.strip("'") for name in known.split(", ")]
            reason = f"{value} is not a {'command' if what == 'COMMAND' else f'value of {what}'}"
            raise usage_error(reason, value, names, f"use one of {', '.join(names)}", self.prog)
        message = re.sub(r"invalid int value: ('.*')", r"\1 is not a whole number", message)
        raise usage_error(message, "", (), "", self.prog)


def whole(least: int, most: int = 10**18) -> Callable[[str], int]:
    """Return a function that reads the value of an option as a whole number.

    Example:
        >>> whole(1)("10_000")
        10000
        >>> whole(1, 20)("21")
        Traceback (most recent call last):
        argparse.ArgumentTypeError: '21' is not a number from 1 to 20
    """

    def read(text: str) -> int:
        digits = text.replace("_", "")  # command lines of Wallaroo have underscores in numbers
        if digits.isascii() and digits.isdecimal() and least <= int(digits[:20]) <= most:
            return int(digits)
        bounds = f"of {least} or more" if most == 10**18 else f"from {least} to {most}"
        message = f"{text!r} is not a number {bounds}"
        raise argparse.ArgumentTypeError(message)

    return read


def amount(noun: str, example: str) -> Callable[[str], float]:
    """Return a function that reads the value of an option as a number from 0 to 1,000,000,000.

    Example:
        >>> amount("number of days", "30")("0.5")
        0.5
        >>> amount("number of days", "30")("nan")
        Traceback (most recent call last):
        argparse.ArgumentTypeError: 'nan' is no number of days; write e.g. 30
    """

    def read(text: str) -> float:
        with suppress(ValueError):
            if 0 <= (value := float(text)) <= MOST:
                return value
        message = f"{text!r} is no {noun}; write e.g. {example}"
        raise argparse.ArgumentTypeError(message)

    return read


def unknown_arguments(parser: Parser, extras: list[str]) -> RunError:
    """Return the error for arguments that a command does not have."""
    extra = extras[0].partition("=")[0]
    if extra.startswith("-"):
        reason = f"{extra} is not an option of {parser.prog}"
        if "--in" in parser.options():  # this command reads a program, which has its own options
            fix = did_you_mean(extra, parser.options()).removeprefix("; ").replace('"', "")
            raise wrong_usage(reason=reason, fix=f"{fix} After -- the application sees it".strip())
    else:
        reason = f"{extra} is one argument too many for {parser.prog}"
    return usage_error(reason, extra, parser.options(), "", parser.prog)


def usage_error(reason: str, value: str, known: Iterable[str], otherwise: str, program: str) -> RunError:
    """Return an R608 whose remedy is the most similar word of `known`, or else `otherwise`, or else the help."""
    close = closest(value, known)
    fix = f"did you mean {close}?" if close else otherwise or f"see `{program} --help`"
    return wrong_usage(reason=reason, fix=fix)


def wrong_usage(*, reason: str, fix: str) -> RunError:
    """Return the error for a wrong command line (R608), with the reason and the remedy."""
    return RunError.of("R608", USAGE, reason=reason, fix=fix)


def refuse_together(option: str, why: Mapping[str, str | bool | None]) -> None:
    """Refuse options of `run` that cannot be given together with `option`.

    Args:
        option: The option that the user has given.
        why: For each excluded option the reason; empty or False if the user has not given the excluded option.

    Raises:
        RunError: R608 if the user has given an excluded option.
    """
    for other, reason in why.items():
        if reason:
            text = f"{option} does not go with {other}: {reason}"
            raise wrong_usage(reason=text, fix=f"leave out {other}, or {option}")


def app_of(arguments: argparse.Namespace, program: str) -> str:
    """Return the application that the command line names.

    Raises:
        RunError: R608 if there is no application.
    """
    if not arguments.app:
        raise wrong_usage(reason=f"{program} needs an application", fix=f"give APP, e.g. `{program} word_count.py`")
    return str(arguments.app)
