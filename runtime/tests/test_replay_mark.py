"""Marks of replayed dead letters, of which a loss of power has cut the file."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.checkpoint.dead_letter import FOLDER
from wallaroo_runtime.maintenance.replay import MARKS, letters_locked, mark, read_marks

IDS = st.lists(st.builds("{}-{}-{}".format, *[st.integers(0, 200)] * 3), max_size=4)


@given(IDS, IDS, st.data())
def test_a_cut_line_marks_no_letter(first: list[str], second: list[str], data: st.DataObject) -> None:
    with TemporaryDirectory() as directory:
        checkpoint = Path(directory)
        with letters_locked(checkpoint):
            mark(checkpoint, first)
            path = checkpoint / FOLDER / MARKS
            content = path.read_bytes()[: data.draw(st.integers(0, path.stat().st_size))]
            path.write_bytes(content)
            mark(checkpoint, second)
        assert [*read_marks(checkpoint)] == [*content.decode().split("\n")[:-1], *second]
