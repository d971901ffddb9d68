"""`JournalService.Follow`: who follows a journal hears of each growth, and of the end of its driver's time."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.service import Place, code_of, listening, serving
from wallaroo_runtime.gateway.service import HeadWatch
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import ServiceClient
from wallaroo_runtime.storage.journal.head import Position

CALL_S = 120.0


def follow(place: Place, journal: str = "") -> Iterator[pb.Position]:
    """Follow the journal; the call's errors are those of the catalogue."""
    client = ServiceClient(place.service)
    request = pb.ReadRequest(epoch=place.service.epoch, journal=journal)
    call = client.stub.Follow(request, timeout=CALL_S, metadata=client.metadata)
    try:
        yield from call
    except grpc.RpcError as error:
        raise client.failure(error) from error
    finally:
        call.cancel()


def source(place: Place) -> socket.socket:
    """Connect to the gateway's source."""
    host, port = place.host._part.addresses()[0]
    return socket.create_connection((host, port), timeout=30)


def test_who_follows_hears_of_each_message_at_once(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place, source(listening(place)) as sender:
        positions = follow(place, place.service.store)
        begin = next(positions)
        assert (begin.offset, begin.messages, begin.journal) == (0, 0, place.service.store)
        for count in range(1, 20):
            sender.sendall(b"\0\0\0\2ab")
            assert next(positions).messages == count


def test_a_slow_follower_hears_of_the_latest_position_alone() -> None:
    watch, told = HeadWatch(), []
    version = watch.version
    for messages in range(1, 1000):
        watch.move(Position(messages * 46, messages, 7))
    version, safe = watch.wait(version)
    told.append(safe)
    assert told == [Position(999 * 46, 999, 7)]
    late = threading.Thread(target=lambda: told.append(watch.wait(version)[1]))
    late.start()
    watch.move(Position(46_000, 1000, 7))
    late.join(30)
    assert told[1] == Position(46_000, 1000, 7)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 4))
def test_positions_rise_to_the_last_one(growth: list[int], followers: int) -> None:
    watch, ends = HeadWatch(), [0]
    for each in growth:
        ends.append(ends[-1] + each)
    heard: list[list[int]] = [[] for _ in range(followers)]

    def listen(mine: list[int], version: int) -> None:
        while not mine or mine[-1] < ends[-1]:
            version, safe = watch.wait(version)
            assert safe is not None
            mine.append(safe.offset)

    begin = watch.version
    threads = [threading.Thread(target=listen, args=(mine, begin)) for mine in heard]
    for thread in threads:
        thread.start()
    for end in ends:
        watch.move(Position(end, end, 1))
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    for mine in heard:
        assert mine == sorted(set(mine)) and mine[-1] == ends[-1] and set(mine) <= set(ends)


def test_another_driver_ends_the_call(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place:
        positions = follow(listening(place))
        next(positions)
        place.attach("d2")
        assert code_of(lambda: next(positions)) == "R644"
        assert code_of(lambda: next(follow(place))) == "R644"


def test_another_journal_is_refused(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place:
        assert code_of(lambda: next(follow(listening(place), "00000000000000aa"))) == "R698"


@pytest.mark.parametrize("ends", ["service", "caller"])
def test_the_call_ends_with_the_service_and_with_its_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    ended = threading.Event()
    with serving("gateway", tmp_path) as place:
        follow_host = place.host.follow

        def observed(*arguments: Any) -> Iterator[Position]:
            try:
                yield from follow_host(*arguments)
            finally:
                ended.set()

        monkeypatch.setattr(place.host, "follow", observed)
        positions = follow(listening(place))
        next(positions)
        if ends == "service":
            place.host.release()
            assert list(positions) == []
        else:
            positions.close()  # type: ignore[attr-defined]
        assert ended.wait(60)
