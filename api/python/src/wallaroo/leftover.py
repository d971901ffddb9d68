"""Options of a program that its parsers leave over, and that look like a misspelt one of theirs.

`parse_known_args` gives back what it does not know, and most programs drop that. Other leftovers are left alone: the
program may read them itself.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wallaroo.diagnostic import Diagnostic, closest

ALIKE = 0.8  # a guess that nobody asked for


class Leftovers:
    """What parsers of `argparse` took of the options that they got, and what they could have taken."""

    def __init__(self) -> None:
        self._known, self._taken, self._left = set[str](), set[str](), set[str]()

    def add(self, known: Iterable[str], given: Sequence[str], rest: Sequence[str]) -> None:
        """Take in a call of a parser.

        Args:
            known: The parser's options.
            given: What it got.
            rest: What it gave back.
        """
        left = _options(rest)
        self._known |= set(known)
        self._taken |= _options(given) - left
        self._left |= left

    def findings(self) -> list[Diagnostic]:
        """Return a finding (R735) for each option that no parser took and that is much like one of theirs.

        Example:
            >>> found = Leftovers()
            >>> found.add(["--window", "--depth"], ["--windw", "5", "--other"], ["--windw", "5", "--other"])
            >>> [finding.message for finding in found.findings()]
            ['no parser of this program takes --windw']
        """
        guesses = {name: closest(name, self._known, ALIKE) for name in sorted(self._left - self._taken - self._known)}
        return [Diagnostic.of("R735", option=name, close=close) for name, close in guesses.items() if close]


def _options(tokens: Sequence[str]) -> set[str]:
    """Return the names of long options; `--` ends them."""
    own = tokens[: tokens.index("--")] if "--" in tokens else tokens
    return {token.partition("=")[0] for token in own if token.startswith("--")}


@contextmanager
def watched() -> Iterator[Leftovers]:
    """Give what the parsers leave over that run within."""
    found, parse = Leftovers(), argparse.ArgumentParser.parse_known_args

    def parse_watched(parser: argparse.ArgumentParser, args: Any = None, namespace: Any = None) -> Any:
        given = sys.argv[1:] if args is None else list(args)
        result, rest = parse(parser, given, namespace)
        found.add(parser._option_string_actions, given, rest)
        return result, rest

    argparse.ArgumentParser.parse_known_args = parse_watched  # type: ignore[method-assign, assignment]
    try:
        yield found
    finally:
        argparse.ArgumentParser.parse_known_args = parse  # type: ignore[method-assign]
