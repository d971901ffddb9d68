"""Tables of commands at terminals of drawn widths, and in a pipe."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.monitored import monitored, stopped
from support.terminal import looked_at, terminal
from wallaroo_runtime.checkpoint.registry import registered
from wallaroo_runtime.cli.dead_letters import COLUMNS, GROUPS, shown_input
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.console.reporter import printable
from wallaroo_runtime.console.table import WHOLE, Column, Table, columns_of, number, shortened, text

FORMS = {
    "ps": (number("pid", 8), text("application", 32), number("processes", 0), text("checkpoint", least=WHOLE)),
    "ls": COLUMNS,
    "groups": GROUPS,
    "status": (text("part", 28, 28), *(number(name, 12) for name in ("in", "out", "in/s", "dead letters"))),
}
NUMBERS = (st.integers(0, 9) | st.integers(0, 999_999_999_999)).map("{:,}".format)
TEXTS = st.text("ab/世é\x1b …", max_size=70)

__all__ = ["stopped"]  # a fixture


@given(
    st.sampled_from(list(FORMS.values())),
    st.integers(30, 210),
    st.sampled_from([0, 2]),
    st.sampled_from([1, 2]),
    st.data(),
)
def test_a_row_fits_the_terminal_as_far_as_its_texts_can_be_shortened(
    columns: Sequence[Column], room: int, indent: int, gap: int, data: st.DataObject
) -> None:
    row = st.tuples(*(TEXTS if column.least else NUMBERS for column in columns))
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    table = Table(columns, rows, indent=indent, gap=gap, room=room)
    least = indent + gap * (len(columns) - 1)
    for cells, column in zip(zip(*rows, strict=True), columns, strict=True):
        widest = max(columns_of(printable(cell)) for cell in (column.name, *cells))
        least += min(widest, column.least) if column.least else widest
    lines = [table.head, *map(table.line, rows)]
    assert all(columns_of(line) <= max(room, least) for line in lines), lines
    for cells, line in zip(rows, lines[1:], strict=True):
        words = line.replace("…", " ").split()
        assert all(cell in words for cell, column in zip(cells, columns, strict=True) if not column.least)


@given(st.sampled_from(list(FORMS)), st.data())
def test_nothing_is_shortened_in_a_pipe(name: str, data: st.DataObject) -> None:
    columns = FORMS[name]
    row = [data.draw(st.text("ab /", max_size=90) if column.least else NUMBERS) for column in columns]
    line = Table(columns).line(row)
    assert all(cell.rstrip() in line for cell in row)


@given(st.text("ab世é", max_size=40), st.integers(2, 50))
def test_what_is_shortened_says_so(text: str, width: int) -> None:
    found = shortened(text, width)
    assert columns_of(found) <= width
    assert (found == text) == (columns_of(text) <= width)
    assert found == text or (text.startswith(found[:-1]) and found[-1] == "…")


@given(st.binary(min_size=1, max_size=40), st.integers(30, 90))
def test_bytes_fit_the_terminal(data: bytes, room: int) -> None:
    lines = list(shown_input(b"\0" + data, room))
    assert max(map(len, lines)) + 2 <= room  # `show` indents them
    octets = "".join(re.sub(r"^[0-9a-f]{8}  (.*?)  .*", r"\1", line) for line in lines)
    assert bytes.fromhex(octets) == b"\0" + data


@pytest.mark.parametrize("columns", [80, 120])
def test_what_commands_show_fits(columns: int, stopped: Path) -> None:
    (stopped / "journal").mkdir()
    commands: list[Sequence[str]] = [["ps"], ["status", str(stopped)]]
    with monitored(stopped) as server, registered(stopped, "Word Count"):
        found = [_seen(columns, lambda command=command: main(command)) for command in commands]  # type: ignore[misc]
    for lines in found:
        kept = [line for line in lines if server.url not in line and str(stopped) not in line]
        assert all(len(line) <= columns for line in kept), kept
    assert str(os.getpid()) in " ".join(found[0]).split()
    dead = " ".join(found[1])
    assert "dead letters" in dead and "Split and Count" in dead


def _seen(columns: int, run: Callable[[], int]) -> list[str]:
    with terminal(columns) as seen:
        assert run() == 0
        return looked_at(seen)
