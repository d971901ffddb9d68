"""Records: what was written is read again; a byte that differs is damage, and a kill leaves one of two records."""

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.manifest import put_manifest
from wallaroo.diagnostic.diagnostic import Kind
from wallaroo_runtime.checkpoint.manifest import Manifest, find_manifest, write_manifest
from wallaroo_runtime.durable import file as durable_file
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.durable.record import pack_record, read_record, unpack_record, write_record
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.source_progress import Last, _Kept
from wallaroo_runtime.plan.port import Ports
from wallaroo_runtime.service.attachment import Attachment
from wallaroo_runtime.service.driver import DriverNote
from wallaroo_runtime.storage.journal.visit import Visited, Visits
from wallaroo_runtime.storage.record_count import Counted

TEXT, NUMBER = st.text(st.characters(exclude_categories=()), max_size=6), st.integers()


def named(of: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(TEXT, of, max_size=3)


def numbered(of: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[int, Any]]:
    return st.dictionaries(NUMBER, of, max_size=3)


JSON = st.recursive(st.none() | st.booleans() | NUMBER | TEXT, lambda of: st.lists(of, max_size=3) | named(of))
PORTS = st.builds(Ports, named(NUMBER), named(NUMBER), NUMBER)
MANIFEST = st.builds(
    Manifest,
    topology=named(JSON),
    shuffle_partitions=NUMBER,
    buckets_per_partition=NUMBER,
    ports=PORTS,
    id=TEXT,
    services=named(TEXT),
    journal=TEXT,
    microbatch=st.just(()) | st.tuples(NUMBER, NUMBER),
    rescaled=st.tuples(NUMBER, NUMBER),
    rerun_batches=st.lists(NUMBER, max_size=3).map(tuple),
    topics=numbered(TEXT),
)
RECORDS = st.one_of(
    MANIFEST,
    st.builds(DriverNote, NUMBER, NUMBER, TEXT, st.booleans(), TEXT, TEXT, NUMBER),
    st.builds(Attachment, NUMBER, TEXT, TEXT, TEXT, named(JSON), TEXT),
    st.builds(Counted, TEXT, *[NUMBER] * 4),
    st.builds(Visits, numbered(NUMBER)),
    st.builds(Visited, numbered(st.tuples(NUMBER, NUMBER)), NUMBER),
    st.builds(_Kept, NUMBER, numbered(st.builds(Last, st.binary(max_size=9), NUMBER)), numbered(numbered(NUMBER)),
              numbered(TEXT)),
)  # fmt: skip


def refusal(kind: type[Any], content: bytes) -> str:
    with pytest.raises(RunError) as caught:
        unpack_record(kind, content, "/c/record")
    assert [finding.kind for finding in caught.value.diagnostics] == [Kind.DAMAGED]
    return caught.value.diagnostics[0].message


@given(RECORDS)
def test_what_is_written_is_read(record: Any) -> None:
    content = pack_record(record)
    assert unpack_record(type(record), content, "") == record
    assert isinstance(json.loads(content), dict), "people, and their programs, can read it"


@given(RECORDS, st.data())
def test_each_damaged_byte_is_told(record: Any, data: st.DataObject) -> None:
    content = pack_record(record)
    at = data.draw(st.integers(0, len(content) - 1))
    other = data.draw(st.integers(1, 255))
    flipped = content[:at] + bytes([content[at] ^ other]) + content[at + 1 :]
    for damaged in (flipped, content[:at], content[at + 1 :], content + content[at:], content + b"\n", b""):
        assert refusal(type(record), damaged) == "/c/record is damaged; it does not fit its checksum"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MANIFEST, st.data())
def test_each_damaged_byte_of_a_checkpoint_is_told(tmp_path: Path, record: Manifest, data: st.DataObject) -> None:
    """Another version is refused as one, whatever else it holds: its checksum may be of another kind."""
    directory = LocalDirectory(tmp_path)
    write_manifest(directory, record)
    assert find_manifest(directory) == record
    file = tmp_path / "application.json"
    content = file.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    flipped = bytes([content[at] ^ data.draw(st.integers(1, 255))])
    for damaged in (content[:at] + flipped + content[at + 1 :], content[:at]):
        file.write_bytes(damaged)
        with pytest.raises(RunError, match="R698|R615 .* format version .* is not known"):
            find_manifest(directory)
    file.write_bytes(pack_record(replace(record, format_version=data.draw(st.sampled_from([1, 2, 4])))))
    with pytest.raises(RunError, match="R615 .* format version [124] is not known; this runtime reads version 3"):
        find_manifest(directory)


@dataclass(frozen=True)
class Fewer:
    """A record of another layout."""

    query: str = ""
    written: int = -1


@dataclass(frozen=True)
class Other:
    query: int = 7
    written: tuple[int, ...] = field(default=(1,))


def test_a_record_of_another_kind_is_told() -> None:
    assert refusal(Counted, pack_record(Fewer())) == "/c/record is damaged; its fields are query, written"
    assert refusal(Fewer, pack_record(Other())) == "/c/record is damaged; 7 is no str"
    assert "/c/record is damaged; " in refusal(Other, pack_record(Fewer("7", 1)))
    assert refusal(Counted, b"[]\n" + pack_record(Fewer())) == "/c/record is damaged; it does not fit its checksum"


CALLS = ("os.open", "os.fdopen", "os.fsync", "Path.replace", "sync_directory")


def write_until(point: int, path: Path, record: Any) -> None:
    """Write a record in a process that ends before or after one of the calls by which it is written."""
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        return
    name, is_before = CALLS[point // 2], point % 2 == 0
    where: Any = {"os": os, "Path": Path}.get(name.partition(".")[0], durable_file)
    call = getattr(where, attribute := name.rpartition(".")[2])

    def killed(*arguments: Any, **options: Any) -> Any:
        if not is_before:
            call(*arguments, **options)
        os._exit(9)

    setattr(where, attribute, killed)
    try:
        write_record(path, record)
    finally:
        os._exit(1)


@pytest.mark.slow  # it forks
@pytest.mark.parametrize("point", range(2 * len(CALLS)))
@settings(max_examples=10, deadline=None)
@given(before=st.none() | RECORDS, after=RECORDS)
def test_a_kill_leaves_the_former_record_or_the_new_one(point: int, before: Any, after: Any) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "record"
        if before is not None:
            write_record(path, before)
        write_until(point, path, after)
        left = after if point > 2 * CALLS.index("Path.replace") else before
        assert read_record(path, type(left)) == left
        write_record(path, after)
        assert read_record(path, type(after)) == after, "what is left over is in nobody's way"


def test_what_cannot_be_read_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    assert read_record(tmp_path / "none", Counted) is None
    with pytest.raises(RunError, match="R698 .*record is damaged; .*Is a directory"):
        read_record(tmp_path / "record", Counted)


def test_a_missing_record_is_no_checkpoint(tmp_path: Path) -> None:
    assert find_manifest(LocalDirectory(tmp_path)) is None
    assert put_manifest(tmp_path, name="Sums").name == "Sums"
