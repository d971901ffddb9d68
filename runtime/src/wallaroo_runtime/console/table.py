"""Prints the tables of commands. At a terminal, texts of wide rows are shortened, the widest first; numbers never."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from unicodedata import combining, east_asian_width

from wallaroo_runtime.console.reporter import printable
from wallaroo_runtime.console.status_line import terminal_width

MORE = "…"
LEAST_ROOM = 20  # in a narrower terminal, lines are longer than the terminal
WHOLE = 1000  # least width of texts that are not shortened, such as paths and ids


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, with its name and widths.

    Attributes:
        name: Head of the column.
        width: Width if stdout is no terminal. Longer cells are then not shortened.
        least: The least width to which texts may be shortened; 0 for numbers, which stay whole and are aligned right.
    """

    name: str
    width: int
    least: int = 0


def number(name: str, width: int) -> Column:
    """Return a column of numbers."""
    return Column(name, width)


def text(name: str, width: int = 0, least: int = 12) -> Column:
    """Return a column of texts."""
    return Column(name, width, least)


class Table:
    r"""A table as lines of text, with a line of column names. Control characters in cells are escaped.

    Args:
        columns: Columns from left to right.
        rows: Rows that determine the widths; other rows may follow.
        indent: Indentation of each line.
        gap: Number of spaces between columns.
        room: Width of the terminal, which lines exceed only if no text can be shortened; None if there is no terminal.

    Example:
        >>> row = "7", "/checkpoints/count", "a text of many words"
        >>> table = Table([number("pid", 5), text("checkpoint", least=WHOLE), text("note")], [row], room=37)
        >>> print("\n".join([table.head, table.line(row)]))
        pid  checkpoint          note
          7  /checkpoints/count  a text of m…
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
        if room is not None:
            self._widths = self._fitting([[printable(cell) for cell in row] for row in rows], room)

    @property
    def head(self) -> str:
        """The line with the column names."""
        return self.line([column.name for column in self._columns])

    def line(self, row: Sequence[str]) -> str:
        """Return a row as one line."""
        return (" " * self._indent + (" " * self._gap).join(self._padded(map(printable, row)))).rstrip()

    def _fitting(self, rows: Sequence[Sequence[str]], room: int) -> list[int]:
        """Return widths of columns with which rows fit the terminal, as far as texts can be shortened."""
        listed = [[column.name for column in self._columns], *rows]
        widths = [max(map(columns_of, cells)) for cells in zip(*listed, strict=True)]
        if not rows:
            widths = [max(width, column.width) for width, column in zip(widths, self._columns, strict=True)]
        spare = room - self._indent - sum(widths) - self._gap * (len(widths) - 1)
        while spare < 0:
            longer = [at for at, column in enumerate(self._columns) if 0 < column.least < widths[at]]
            if not longer:
                return widths
            widths[max(longer, key=lambda at: widths[at])] -= 1
            spare += 1
        if self._columns[-1].least:
            widths[-1] += spare  # leave the rest of the room to later rows, whose widths are not known
        return widths

    def _padded(self, cells: Iterable[str]) -> Iterator[str]:
        """Yield each cell, cut if necessary, with the width of its column: texts on the left, numbers on the right."""
        for cell, column, width in zip(cells, self._columns, self._widths, strict=True):
            is_long = self._room is not None and 0 < column.least < WHOLE
            shown = shortened(cell, width) if is_long else cell
            padding = " " * (width - columns_of(shown))
            yield shown + padding if column.least else padding + shown


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]] = (), *, indent: int = 0, gap: int = 2) -> Table:
    """Return a table for stdout."""
    return Table(columns, rows, indent=indent, gap=gap, room=room())


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with its head and all its rows."""
    printed = table(columns, rows)
    print("\n".join([printed.head, *map(printed.line, rows)]))


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


def shortened(text: str, width: int) -> str:
    """Return a text of at most `width` columns, with an ellipsis in place of the part that is left out.

    Example:
        >>> shortened("Split and Count", 8), shortened("Count", 8)
        ('Split a…', 'Count')
    """
    if columns_of(text) <= width:
        return text
    kept = text[:width]
    while kept and columns_of(kept) > width - 1:
        kept = kept[:-1]
    return kept + MORE
