"""What docs/state.md prints of timers runs, and gives what it says."""

import re
from pathlib import Path

from support.run import TESTS
from wallaroo.testing import run

PAGE = (TESTS.parent / "docs" / "state.md").read_text(encoding="utf-8")


def program(name: str, folder: Path) -> str:
    """Write a program of the page to a file, and return its path."""
    found = re.search(rf"```python\n# {name}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    (folder / name).write_text(found[1], encoding="utf-8")
    return str(folder / name)


def test_a_visit_ends_as_printed(tmp_path: Path) -> None:
    said, printed = re.search(r"The lines (.*) come in", PAGE), re.search(r"```text\n(ann: .*?)```", PAGE, re.DOTALL)
    assert said and printed
    with run(program("clicks.py", tmp_path)) as app:
        app.send([line.encode() for line in re.findall(r"`(.*?)`", said[1])])
        app.advance(299)
        assert app.output() == []
        app.advance(1)
        assert b"".join(app.output()).decode() == printed[1]


def test_two_streams_join_within_a_time(tmp_path: Path) -> None:
    with run(program("join.py", tmp_path)) as app:
        app.send([b"1 bread", b"2 milk"], "orders")
        app.advance(400)
        app.send([b"2 card", b"3 cash"], "payments")
        app.advance(200)
        app.send([b"1 cash"], "payments")  # too late: a key of its own
        app.advance(400)
        app.advance(200)
        assert b"".join(app.output()).decode().splitlines() == [
            "2: milk, card", "1: order alone", "3: payment alone", "1: payment alone",
        ]  # fmt: skip
        assert not app.dead_letters
