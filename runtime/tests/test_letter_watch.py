"""Which dead letters are reported: drawn micro-batches are published, and every report is found again by its id."""

import json
import traceback
from collections import Counter
from dataclasses import asdict
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import Mock, patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.manifest import put_manifest
from wallaroo.message.frame import DEAD_LETTER_PORT, encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.dead_letter import find_letter
from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.spark import letter_watch
from wallaroo_runtime.spark.letter_watch import Notable, is_power_of_ten, shortened
from wallaroo_runtime.spark.publish import Publisher
from wallaroo_runtime.spark.row_sink import RowSinks
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.staging import StagedFile, StagingWriter
from wallaroo_runtime.storage.place import OutputPlace
from wallaroo_runtime.topology.error_policy import ErrorPolicy

QUERY = "0b9a1f60-1111-2222-3333-444455556666"
KINDS = st.tuples(st.sampled_from("abc"), st.sampled_from(["C501", "C505"]))
# Micro-batches: of each task the partition and the frames of dead letters.
BATCHES = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.lists(st.lists(KINDS, max_size=12), max_size=3)), max_size=4), max_size=8
)


@given(st.integers(0, 30))
def test_a_shortened_traceback_has_the_users_function_and_the_error(depth: int) -> None:
    def library(left: int) -> None:
        if left:
            library(left - 1)
        raise ValueError(depth)

    def decode() -> None:
        library(depth)

    try:
        decode()
    except ValueError as error:
        whole = "".join(
            traceback.format_exception(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next))
        )
    shown = shortened(whole).splitlines()
    assert "in decode" in shown[1]
    assert shown[-1] == f"ValueError: {depth}"
    assert len(shown) <= 10
    assert ("  ..." in shown) == (len(whole.splitlines()) > 9)


@pytest.mark.parametrize(
    ("data", "is_framed"),
    [
        (b"\0\0\0\x05hello", True),
        (b"\0\0\0\x06hello", True),  # its line break was the end of the line
        (b"\0\0\0\x02hi\0\0\0\x02ho", True),
        (b"hello", False),
        (b"", False),
        (b"\0\0\0\0", False),
    ],
)
def test_a_frame_at_a_source_of_lines_is_suspected(data: bytes, is_framed: bool) -> None:
    letter = pb.DeadLetter(code="C505", path="0/sources/0", step="lines", error="no", input=data)
    assert ("--framing newline" in Notable(1, False, "1-0-0", letter).finding("show").fix) == is_framed
    letter.origin.topic = "orders"
    assert Notable(1, False, "1-0-0", letter).hint == ""


def test_a_report_shows_key_and_message() -> None:
    letter = pb.DeadLetter(code="C501", path="0/steps/0", error="no", key=b"ann", has_key=True, preview="Order(1)")
    assert "C501 no (key 'ann'; Order(1))" in Notable(1, False, "1-0-0", letter).finding("show").message


def published(directory: Path, batches: list[Any]) -> list[Notable]:
    publisher = Publisher(
        Outbox(directory / "outbox", directory / "dead-letters"),
        ErrorPolicy(),
        rows=RowSinks(Mock(), {}, OutputPlace.on(directory), Mock()),
        offset_log=Mock(query=QUERY, offsets=lambda batch: ""),
        balance=Mock(),
        records=Mock(),
        tell_visits=Mock(),
        tell_batch=None,
        application="",
        workers={},
    )
    reported: list[Notable] = []
    texts = map("error {}".format, count())
    for batch, tasks in enumerate(batches):
        files: list[StagedFile] = []
        for attempt, (partition, frames) in enumerate(tasks):
            writer = StagingWriter(str(directory / "staging"), QUERY, batch, partition, attempt)
            for kinds in frames:
                letters = [pb.DeadLetter(code=code, path=path, step=path, error=next(texts)) for path, code in kinds]
                values = [letter.SerializeToString() for letter in letters]
                writer.write(DEAD_LETTER_PORT, encode_frame(values, port=DEAD_LETTER_PORT))
            files += writer.finish()
        for rows in (files, []):  # Spark calls again for a micro-batch after a crash
            publisher([json.dumps(asdict(file)) for file in rows], batch)
        reported += publisher.watch.news()
    return reported


@settings(deadline=None, max_examples=20)
@given(BATCHES)
def test_the_first_of_a_kind_and_each_power_of_ten_are_reported(batches: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        reported = published(Path(folder), batches)
        counts = Counter(kind for tasks in batches for _, frames in tasks for kinds in frames for kind in kinds)
        expected = [(*kind, at) for kind, count in counts.items() for at in range(1, count + 1) if is_power_of_ten(at)]
        assert sorted((each.letter.path, each.letter.code, each.count) for each in reported) == sorted(expected)
        for each in reported:
            assert not each.is_least
            assert find_letter(Path(folder), each.id).record == each.letter
            assert each.id in str(each.finding("show"))


@settings(deadline=None, max_examples=20)
@given(BATCHES, st.integers(0, 5))
def test_letters_beyond_the_limit_are_not_claimed_to_be_counted(batches: list[Any], limit: int) -> None:
    with TemporaryDirectory() as folder, patch.object(letter_watch, "LETTERS_PER_BATCH", limit):
        reported = published(Path(folder), batches)
    skipped = False
    sizes = [sum(len(kinds) for _, frames in tasks for kinds in frames) for tasks in batches]
    by_batch = {batch: [each for each in reported if each.id.startswith(f"{batch}-")] for batch in range(len(batches))}
    for batch, size in enumerate(sizes):
        skipped |= size > limit
        assert all(each.is_least == skipped for each in by_batch[batch])


def test_groups_are_listed_largest_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = [("a", "C501"), ("b", "C505"), ("b", "C505")]
    published(tmp_path, [[(0, [kinds])], [(1, [kinds])]])
    put_manifest(tmp_path)
    assert cli.main(["dead-letters", "ls", "--group", "--json", str(tmp_path)]) == 0
    groups = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["count"], each["step"], each["first"], each["last"]) for each in groups] == [
        (4, "b", "0-0-1", "1-1-2"),
        (2, "a", "0-0-0", "1-1-0"),
    ]
    assert cli.main(["dead-letters", "ls", "--group", str(tmp_path)]) == 0
    assert "4  C505   b" in capsys.readouterr().out
