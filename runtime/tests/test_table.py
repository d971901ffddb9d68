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
from wallaroo_runtime.console.table import Table, columns_of, number, pieces, place, shortened, text, wrapped

FORMS = {
    "ps": (number("pid", 8), text("application", 32), number("processes", 0), place("checkpoint")),
    "ls": COLUMNS,
    "groups": GROUPS,
    "status": (text("part", 28, 28), *(number(name, 12) for name in ("in", "out", "in/s", "dead letters"))),
}
NUMBERS = (st.integers(0, 9) | st.integers(0, 999_999_999_999)).map("{:,}".format)
TEXTS = st.text("ab/世é\x1b …", max_size=70)

__all__ = ["stopped"]  # a fixture


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, int, list[list[str]]]:
    columns = draw(st.sampled_from(list(FORMS.values())))
    row = st.tuples(*(TEXTS if column.least else NUMBERS for column in columns)).map(list)
    room = draw(st.integers(30, 210))  # a name and a number of twelve digits fit
    known, later = draw(st.lists(row, max_size=4)), draw(st.lists(row, max_size=2))
    indent, gap = draw(st.sampled_from([0, 2])), draw(st.sampled_from([1, 2]))
    return Table(columns, known, indent=indent, gap=gap, room=room), room, [*known, *later]


@given(tables())
def test_a_row_fits_the_terminal_and_its_numbers_are_whole(
    drawn: tuple[Table, int, list[list[str]]],
) -> None:
    table, room, rows = drawn
    assert all(columns_of(line) <= room for line in table.head())
    for row in rows:
        lines = table.lines(row)
        assert all(columns_of(line) <= room for line in lines), lines
        words = " ".join(lines).replace("…", " ").split()
        assert all(cell in words for cell in row if cell.replace(",", "").isdigit())


def test_a_later_row_that_does_not_fit_is_a_block() -> None:
    table = Table((number("count", 9), text("error", 60)), [("1", "a" * 40)], room=30)
    assert table.lines(("999,999,999,999", "b" * 30)) == [
        "count 999,999,999,999",
        f"error {'b' * 24}",
        f"      {'b' * 6}",
        "",
    ]


@given(st.sampled_from(list(FORMS)), st.data())
def test_nothing_is_shortened_in_a_pipe(name: str, data: st.DataObject) -> None:
    columns = FORMS[name]
    row = [data.draw(st.text("ab /", max_size=90) if column.least else NUMBERS) for column in columns]
    (line,) = Table(columns).lines(row)
    assert all(cell.rstrip() in line for cell in row)


@given(st.text("ab世é", max_size=40), st.integers(2, 50), st.booleans())
def test_what_is_shortened_says_so(text: str, width: int, keeps_end: bool) -> None:
    found = shortened(text, width, keeps_end=keeps_end)
    assert columns_of(found) <= width
    assert (found == text) == (columns_of(text) <= width)
    kept = found.strip("…")
    assert found == text or ((text.endswith(kept) if keeps_end else text.startswith(kept)) and "…" in found)
    assert "".join(pieces(text, width)) == text
    assert all(columns_of(piece) <= width for piece in pieces(text, width))


@given(st.lists(NUMBERS | st.sampled_from(["in", "out", "dead letters"]), min_size=1, max_size=20), st.integers(20, 90))
def test_words_stay_whole(words: list[str], room: int) -> None:
    found = wrapped(" ".join(words), room)
    assert max(map(len, found)) <= room
    assert " ".join(found).split() == " ".join(words).split()


@given(st.binary(min_size=1, max_size=40), st.integers(30, 90))
def test_bytes_fit_the_terminal(data: bytes, room: int) -> None:
    lines = list(shown_input(b"\0" + data, room))
    assert max(map(len, lines)) + 2 <= room  # `show` indents them
    octets = "".join(re.sub(r"^[0-9a-f]{8}  (.*?)  .*", r"\1", line) for line in lines)
    assert bytes.fromhex(octets) == b"\0" + data


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_what_commands_show_fits(columns: int, stopped: Path) -> None:
    (stopped / "journal").mkdir()
    commands: list[Sequence[str]] = [["ps"], ["status", str(stopped)]]
    with monitored(stopped) as server, registered(stopped, "Word Count"):
        found = [_seen(columns, lambda command=command: main(command)) for command in commands]  # type: ignore[misc]
    for lines in found:
        kept = [line for line in lines if server.url not in line and str(stopped) not in line]
        assert all(len(line) <= columns for line in kept), kept
    assert str(os.getpid()) in " ".join(found[0]).split()
    assert ("application Word Count" in found[0]) == (columns == 40), found[0]
    dead = " ".join(found[1])
    assert "dead letters" in dead and "Split and Count" in dead


def _seen(columns: int, run: Callable[[], int]) -> list[str]:
    with terminal(columns) as seen:
        assert run() == 0
        return looked_at(seen)
