"""Prints the tables of commands, which fit the width of the terminal. If stdout is no terminal, nothing is shortened.

If a row does not fit, its texts are shortened, the widest first. Numbers are never shortened. If this is not enough,
each row becomes a block of lines. Each of these lines has the name of a column and the whole value.
"""

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from unicodedata import combining, east_asian_width

from wallaroo_runtime.console.reporter import printable
from wallaroo_runtime.console.status_line import terminal_width

MORE = "…"
LEAST_ROOM = 20  # in a narrower terminal, lines are longer than the terminal


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, with its name and widths.

    Attributes:
        name: Head of the column.
        width: Width if stdout is no terminal. Longer cells are then not shortened.
        least: The least width to which texts may be shortened; 0 for numbers, which stay whole and are aligned right.
        keeps_end: Whether the end of a text is more important than its beginning, e.g. in a path.
    """

    name: str
    width: int
    least: int = 0
    keeps_end: bool = False


def number(name: str, width: int) -> Column:
    """Return a column of numbers."""
    return Column(name, width)


def text(name: str, width: int = 0, least: int = 12) -> Column:
    """Return a column of texts."""
    return Column(name, width, least)


def place(name: str) -> Column:
    """Return a column of paths. It must be the last column of a table."""
    return Column(name, 0, 24, keeps_end=True)


class Table:
    r"""A table as lines of text, with a line of column names. Control characters in cells are escaped.

    Args:
        columns: Columns from left to right.
        rows: Rows that determine the widths; other rows may follow.
        indent: Indentation of each line.
        gap: Number of spaces between columns.
        room: Width of the terminal; None if there is no terminal.

    Example:
        >>> row = "7", "/var/lib/wallaroo/checkpoints/count"
        >>> table = Table([number("pid", 5), place("checkpoint")], [row], room=32)
        >>> print("\n".join([*table.head(), *table.lines(row)]))
        pid  checkpoint
          7  …wallaroo/checkpoints/count
        >>> print("\n".join(Table([number("n", 5), text("word")], room=20).lines(("7", "a text of many words"))))
            7  a text of ma…
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[str]] = (),
        *,
        indent: int = 0,
        gap: int = 2,
        room: int | None = None,
    ) -> None:
        self._columns, self._indent, self._gap, self._room = columns, indent, gap, room
        self._widths = [column.width for column in columns]
        self._is_block = False
        if room is not None:
            self._widths = self._fitting([[printable(cell) for cell in row] for row in rows], room)

    def head(self) -> list[str]:
        """Return the line with the column names; empty if each row is a block of lines: blocks have the names."""
        return [] if self._is_block else [self._line([column.name for column in self._columns])]

    def lines(self, row: Sequence[str]) -> list[str]:
        """Return a row as one line, or as a block of lines if it does not fit."""
        cells = [printable(cell) for cell in row]
        line = self._line(cells)
        if self._is_block or (self._room is not None and columns_of(line) > self._room):
            return self._block(cells)
        return [line]

    def _fitting(self, rows: Sequence[Sequence[str]], room: int) -> list[int]:
        """Return widths of columns with which rows fit the terminal. If there are none, rows become blocks of lines."""
        listed = [[column.name for column in self._columns], *rows]
        widths = [max(map(columns_of, cells)) for cells in zip(*listed, strict=True)]
        if not rows:
            widths = [max(width, column.width) for width, column in zip(widths, self._columns, strict=True)]
        spare = room - self._indent - sum(widths) - self._gap * (len(widths) - 1)
        while spare < 0:
            longer = [at for at, column in enumerate(self._columns) if 0 < column.least < widths[at]]
            if not longer:
                self._is_block = True
                return widths
            widest = max(longer, key=lambda at: widths[at])
            widths[widest] -= 1
            spare += 1
        if self._columns[-1].least:
            widths[-1] += spare  # leave the rest of the room to later rows, whose widths are not known
        return widths

    def _line(self, cells: Sequence[str]) -> str:
        return (" " * self._indent + (" " * self._gap).join(self._padded(cells))).rstrip()

    def _padded(self, cells: Sequence[str]) -> Iterator[str]:
        """Yield each cell, cut if necessary, with the width of its column: texts on the left, numbers on the right."""
        for cell, column, width in zip(cells, self._columns, self._widths, strict=True):
            is_long = self._room is not None and column.least and columns_of(cell) > width
            shown = shortened(cell, width, keeps_end=column.keeps_end) if is_long else cell
            padding = " " * (width - columns_of(shown))
            yield shown + padding if column.least else padding + shown

    def _block(self, cells: Sequence[str]) -> list[str]:
        """Return a row as a block of lines: one or more for each cell that is not empty, then an empty line."""
        names = max(len(column.name) for column in self._columns)
        width = max(1, (self._room or LEAST_ROOM) - self._indent - names - 1)
        lines = []
        for column, cell in zip(self._columns, cells, strict=True):
            name = column.name
            for piece in pieces(cell, width) if column.least else [cell]:
                lines.append(" " * self._indent + f"{name:<{names}} {piece}")
                name = ""
        return [*lines, ""]


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]] = (), *, indent: int = 0, gap: int = 2) -> Table:
    """Return a table for stdout, at most as wide as the terminal."""
    return Table(columns, rows, indent=indent, gap=gap, room=room())


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with its head and all its rows."""
    printed = table(columns, rows)
    for line in (*printed.head(), *(line for row in rows for line in printed.lines(row))):
        print(line)


def room() -> int | None:
    """Return the width of the terminal of stdout; None if stdout is no terminal."""
    return max(LEAST_ROOM, terminal_width(sys.stdout)) if sys.stdout.isatty() else None


def columns_of(text: str) -> int:
    r"""Return the number of columns that a text takes in a terminal.

    Example:
        >>> columns_of("abc"), columns_of("世界"), columns_of("e\u0301")
        (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def shortened(text: str, width: int, *, keeps_end: bool = False) -> str:
    """Return a text of at most `width` columns, with an ellipsis in place of the part that is left out.

    Example:
        >>> shortened("/var/lib/count", 8, keeps_end=True), shortened("Split and Count", 8), shortened("Count", 8)
        ('…b/count', 'Split a…', 'Count')
    """
    if columns_of(text) <= width:
        return text
    kept = text[-width:] if keeps_end else text[:width]
    while kept and columns_of(kept) > width - 1:
        kept = kept[1:] if keeps_end else kept[:-1]
    return MORE + kept if keeps_end else kept + MORE


def pieces(text: str, width: int) -> list[str]:
    """Cut a text into pieces of at most `width` columns, without loss.

    Example:
        >>> pieces("a text", 4), pieces("", 4)
        (['a te', 'xt'], [])
    """
    cuts, rest = [], text
    while rest:
        end = min(width, len(rest))
        while end > 1 and columns_of(rest[:end]) > width:
            end -= 1
        cuts.append(rest[:end])
        rest = rest[end:]
    return cuts


def wrapped(line: str, room: int | None) -> list[str]:
    """Return a line of words as lines of at most `room` columns. Longer words, e.g. paths, stay whole.

    Example:
        >>> wrapped("in this run: in 12,345  out 67,890", 24), wrapped("in 12,345", None)
        (['in this run: in 12,345', '  out 67,890'], ['in 12,345'])
    """
    if room is None or columns_of(line) <= room:
        return [line]
    return textwrap.wrap(
        line, room, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
