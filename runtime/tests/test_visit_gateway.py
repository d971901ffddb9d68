"""How a gateway takes visits: what is in the journal when a request is answered, and what is refused."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as futures_wait
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.gateway import in_thread
from support.part import journal_request
from support.service import Place, code_of, listening, serving
from wallaroo.message.frame import VISIT_PORT, read_frame, split_frames
from wallaroo.worker._proto import worker_pb2 as worker
from wallaroo_runtime.cli import visit as command
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.gateway import Gateway
from wallaroo_runtime.gateway.service import worker_maker, worker_splitter
from wallaroo_runtime.peer import visit
from wallaroo_runtime.peer.visit import VisitResult, ask, wait
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import PROTOCOL_VERSION
from wallaroo_runtime.service.client import ServiceClient
from wallaroo_runtime.storage.journal.head import write_committed
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.visit import MOST, add_counts, read_visited, read_visits
from wallaroo_runtime.storage.journal.writer import JournalWriter

Wait = Callable[..., None]


@contextmanager
def running(directory: Path, **config: Any) -> Iterator[Gateway]:
    gateway = Gateway(directory, journal_request(**config), worker_splitter, worker_maker)
    with in_thread(gateway):
        yield gateway


def journaled(directory: Path) -> list[tuple[int, str, bytes]]:
    """Return id, name and metadata of the visits that readers of the journal find."""
    reader = JournalReader(directory / "journal")
    found = []
    for data in reader.read(0, reader.end().offset):
        for header, at, _ in split_frames(data):
            if header.port == VISIT_PORT:
                visit = worker.Visit.FromString(bytes(read_frame(data, at).values()[0]))
                found.append((visit.id, visit.name, visit.metadata))
    return found


def test_a_visit_is_in_the_journal_when_it_is_answered(tmp_path: Path) -> None:
    with running(tmp_path, visits=["reset"]) as gateway:
        ids = []
        for number in range(3):
            ids.append(gateway.visits.ask("reset", b"%d" % number))
            assert journaled(tmp_path) == [(each, "reset", b"%d" % at) for at, each in enumerate(ids)]
        assert ids == sorted(set(ids))
        assert gateway.visits.open == 3
        assert JournalReader(tmp_path / "journal").end().messages == 0
        write_committed(tmp_path / "journal", read_visits(tmp_path / "journal")[ids[1]])
    with running(tmp_path, visits=["reset"]) as gateway:
        assert gateway.visits.open == 1
        assert gateway.visits.ask("reset", b"") > ids[-1]


def test_what_a_gateway_does_not_take(tmp_path: Path) -> None:
    with running(tmp_path, visits=["reset"], backlog_bytes=1) as gateway:
        assert code_of(lambda: gateway.visits.ask("resets", b"")) == "R720"
        assert code_of(lambda: gateway.visits.ask("reset", bytes((1 << 20) + 1))) == "R733"
        gateway.visits.ask("reset", b"")
        assert code_of(lambda: gateway.visits.ask("reset", b"too many", seconds=0.1)) == "R733"  # nothing is committed
        write_committed(tmp_path / "journal", JournalReader(tmp_path / "journal").end().offset)
        gateway.visits.ask("reset", b"again")
    assert [metadata for _, _, metadata in journaled(tmp_path)] == [b"", b"again"]


def test_an_application_without_visits_says_so(tmp_path: Path) -> None:
    with running(tmp_path, visits=[]) as gateway, pytest.raises(RunError) as caught:
        gateway.visits.ask("nothing", b"")
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.message) == ("R733", 'visit "nothing": no step of the application takes visits')
    assert code_of(lambda: gateway.visits.ask("reset", b"", seconds=0.1)) == "R733"


def takes_visits(place: Place, driver: str) -> int:
    """Let a driver have a gateway that takes visits; returns its epoch."""
    config = journal_request(visits=["reset"])
    config.driver.CopyFrom(pb.Driver(protocol_version=PROTOCOL_VERSION, id=driver, application="app", checkpoint="c1"))
    return int(ServiceClient(place.service, 1.0).call("Attach", config).epoch)


def test_a_gateway_says_what_came_of_a_visit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("gateway", tmp_path) as place:
        assert code_of(lambda: ask(place.service, "reset", b"")) == "R733"
        listening(place)
        with pytest.raises(RunError, match="no step of the application takes visits"):
            ask(place.service, "reset", b"")
        epoch = takes_visits(place, "d2")
        number = ask(place.service, "reset", b"x")

        def look() -> pb.VisitReply:
            return ServiceClient(place.service).look("Visit", pb.VisitRequest(id=number), 10.0)

        assert (look().id, look().done, look().HasField("count")) == (number, False, False)
        count = pb.VisitCount(id=number, keys=7, failed=2)
        told = pb.CommitRequest(epoch=epoch - 1, counts=[count])
        assert code_of(lambda: ServiceClient(place.service, 1.0).call("Commit", told)) == "R644"
        ServiceClient(place.service, 1.0).call("Commit", pb.CommitRequest(epoch=epoch, counts=[count]))
        write_committed(tmp_path / "journal", JournalReader(tmp_path / "journal").end().offset)
        assert wait(place.service, "reset", number) == VisitResult(number, 7, 2)
        assert wait(place.service, "reset", 1) == VisitResult(1, -1, 0)  # so old that nobody remembers
        number = ask(place.service, "reset", b"y")
        end = JournalReader(tmp_path / "journal").end().offset
        count = pb.VisitCount(id=number, keys=3)
        for offset, is_done in ((end - 1, False), (end, True)):  # in real-time mode nothing need be committed
            ServiceClient(place.service, 1.0).call("Commit", pb.CommitRequest(epoch=epoch, counts=[count], done=offset))
            assert (look().done, look().count.keys) == (is_done, 3)
        service = place.service
    monkeypatch.setattr(visit, "PATIENCE_S", 0.2)
    assert code_of(lambda: wait(service, "reset", number)) == "R733"


def test_a_gateway_that_is_away_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as first:
        service = listening(first).service
        takes_visits(first, "d2")
        number = ask(service, "reset", b"x")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(wait, service, "reset", number)
        assert not futures_wait([done], timeout=0.5).done, "nobody is there"
        with serving("gateway", tmp_path, service.address) as again:
            takes_visits(again, "d3")
            end = JournalReader(tmp_path / "journal").end().offset
            add_counts(tmp_path / "journal", [pb.VisitCount(id=number, keys=7, failed=2)], end)
            assert done.result(60) == VisitResult(number, 7, 2)


def test_what_is_done_is_not_open_though_it_is_not_committed(tmp_path: Path, wait_until: Wait) -> None:
    with running(tmp_path, visits=["reset"]) as gateway:
        ids = [gateway.visits.ask("reset", b"") for _ in range(3)]
        ends = read_visits(tmp_path / "journal").values()
        for number, (identity, end) in enumerate(zip(ids, ends, strict=True), 1):
            assert gateway.visits.open == 4 - number
            add_counts(tmp_path / "journal", [pb.VisitCount(id=identity, keys=1)], end)
            wait_until(lambda left=3 - number: gateway.visits.open == left, "a visit that is done")
    with running(tmp_path, visits=["reset"]) as gateway:
        assert gateway.visits.open == 0


counts = st.dictionaries(st.integers(1, 40), st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=st.lists(counts, max_size=5))
def test_counts_of_visits_are_kept(tmp_path: Path, told: list[dict[int, tuple[int, int]]]) -> None:
    expected: dict[int, tuple[int, int]] = {}
    (tmp_path / "visited").unlink(missing_ok=True)
    for each in told:
        add_counts(tmp_path, (pb.VisitCount(id=number, keys=keys, failed=bad) for number, (keys, bad) in each.items()))
        expected |= each
        assert read_visited(tmp_path).counts == expected
    add_counts(tmp_path, (pb.VisitCount(id=number) for number in range(100, 100 + MOST)))
    assert len(read_visited(tmp_path).counts) == MOST


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(are_visits=st.lists(st.booleans(), max_size=8))
def test_visits_of_a_journal_use_up_sequences_and_are_no_messages(tmp_path: Path, are_visits: list[bool]) -> None:
    directory = tmp_path / f"journal{len(list(tmp_path.iterdir()))}"
    writer = JournalWriter(directory, segment_bytes=60)
    for is_visit in are_visits:
        writer.append(*((VISIT_PORT, 0, [b"\x01\x01x"], 0, 0, 0) if is_visit else (0, 3, [b"abc"], 0)))
    writer.close()
    again = JournalWriter(directory, segment_bytes=60)
    assert again.end.messages == 3 * are_visits.count(False)
    again.close()
    reader = JournalReader(directory)
    found = [header for data in reader.read(0, reader.end().offset) for header, _, _ in split_frames(data)]
    expected = [sum(1 if each else 3 for each in are_visits[:at]) for at in range(len(are_visits))]
    assert [header.sequence for header in found] == expected
    assert [header.count for header in found] == [1 if each else 3 for each in are_visits]


@pytest.mark.parametrize(
    ("options", "code"),
    [((), "R733"), (("--metadata", "a", "--metadata-file", "b"), "R608"), (("--metadata-file", "none"), "R616")],
)
def test_the_command_says_why_nothing_is_visited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], code: str
) -> None:
    (tmp_path / "application.json").write_text("{}")
    assert main(["visit", str(tmp_path), "reset", *options]) in (1, 2)
    assert code in capsys.readouterr().err


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=20))
def test_the_command_passes_a_text_or_any_bytes(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "metadata").write_bytes(data)
    given = [["--metadata-file", str(tmp_path / "metadata")]]
    given += [["--metadata", os.fsdecode(data)]] if not data.startswith(b"-") else []
    for options in given:
        with patch.object(visit, "ask", return_value=7) as asked, patch.object(command, "_gateway", nullcontext):
            assert main(["visit", str(tmp_path), "reset", *options]) == 0
        assert asked.call_args.args[1:] == ("reset", data)
