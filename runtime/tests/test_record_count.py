"""What Spark's own sources and sinks have had since a checkpoint began, over kills at any moment."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.record_count import NAME, RecordCount

BATCH = st.tuples(
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(["committed", "killed when written", "killed before", "killed after"]),
)


class Memory:
    """A directory in memory."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write(self, name: str, content: bytes) -> None:
        self.files[name] = content


def written(count: RecordCount, query: str, batch: int, went: int) -> None:
    """Do what sinks do with a micro-batch."""
    if went and not count.is_written(query, batch):
        count.write(query, batch)


@given(st.lists(st.tuples(BATCH, st.sampled_from(["", "stop", "rescale"]))))
def test_each_message_counts_once(drawn: list[tuple[tuple[int, int, str], str]]) -> None:
    """A kill before or after the note or the count repeats the micro-batch; its messages count once."""
    files: Any = Memory()
    batch, query, received, sent = 0, "q0", 0, 0
    count = RecordCount.open(files)
    for (came, went, end), then in drawn:
        received, sent = received + came, sent + went
        if end in ("killed when written", "killed after"):
            written(count, query, batch, went)
        is_written = count.is_written(query, batch)
        if end == "killed after":
            count.add(query, batch, came, went)
        if end != "committed":
            count = RecordCount.open(files)
        before = count.before
        assert count.is_written(query, batch) == is_written
        written(count, query, batch, went)
        count.add(query, batch, came, went)
        assert (count.now.received, count.now.sent) == (received, sent)
        assert count.before == before
        batch += 1
        if then:
            count = RecordCount.open(files)
            assert count.before == count.now
        if then == "rescale":  # Spark's next checkpoint has a query of its own
            query, batch = f"{query}+", 0


@pytest.mark.parametrize("content", [b"", b"{}", b"nonsense"])
def test_a_file_that_is_damaged(content: bytes, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(RunError) as caught:
        RecordCount.open(LocalDirectory(tmp_path))
    assert caught.value.diagnostics[0].code == "R698"
    assert NAME in str(caught.value)


def test_nobody_keeps_it() -> None:
    count = RecordCount()
    count.add("q", 0, 3, 2)
    assert (count.now.received, count.now.sent) == (3, 2)
