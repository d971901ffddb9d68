"""What Spark's own sources and sinks have had since a checkpoint began, over kills at any moment."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.checkpoint.manifest import LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.record_count import NAME, RecordCount

BATCH = st.tuples(
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from(["committed", "killed before", "killed after"]),
)


class Memory:
    """A directory in memory."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write(self, name: str, content: bytes) -> None:
        self.files[name] = content


@given(st.lists(st.tuples(BATCH, st.sampled_from(["", "stop", "rescale"]))))
def test_each_message_counts_once(drawn: list[tuple[tuple[int, int, int, str], str]]) -> None:
    """A kill before or after the count repeats the micro-batch; its messages count once."""
    files, batch, query = Memory(), 0, 0
    received = written = aside = 0
    count = RecordCount.open(files, is_new=True)
    for (came, went, refused, end), then in drawn:
        received, written, aside = received + came, written + went, aside + refused
        if end != "committed":
            if end == "killed after":
                count.add(f"q{query}", batch, came, went, refused)
            count = RecordCount.open(files, is_new=False)
        before = (count.received_before, count.written_before, count.refused_before)
        count.add(f"q{query}", batch, came, went, refused)
        assert (count.received, count.written, count.refused, count.is_least) == (received, written, aside, False)
        assert (count.received_before, count.written_before, count.refused_before) == before
        batch += 1
        if then:
            count = RecordCount.open(files, is_new=False)
            assert (count.received_before, count.written_before, count.refused_before) == (received, written, aside)
        if then == "rescale":  # Spark's next checkpoint has a query of its own
            query, batch = query + 1, 0


def test_a_checkpoint_of_a_version_that_did_not_count() -> None:
    files = Memory()
    assert RecordCount.open(files, is_new=False).is_least
    again = RecordCount.open(files, is_new=True)
    again.add("q", 5, 3, 2)
    assert (again.received, again.is_least) == (3, True)


@pytest.mark.parametrize("content", [b"", b"00000000 {}\n", b"nonsense"])
def test_a_file_that_is_damaged(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(RunError) as caught:
        RecordCount.open(LocalDirectory(tmp_path), is_new=True)
    assert caught.value.diagnostics[0].code == "R698"
    assert NAME in str(caught.value)


def test_nobody_keeps_it() -> None:
    count = RecordCount()
    count.add("q", 0, 3, 2)
    assert (count.received, count.written) == (3, 2)
