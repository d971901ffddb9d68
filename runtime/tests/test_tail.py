"""`JournalService.Read` without an end: who sees no file of a journal gets all of it, once, as it comes."""

import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from support.service import Place, code_of, listening, serving
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.chunk import CHUNK_BYTES, ChunkJoiner
from wallaroo_runtime.service.client import ServiceClient
from wallaroo_runtime.storage.journal.reader import JournalReader

CALL_S = 120.0


def tail(place: Place, start: int = 0, journal: str = "", token: str = "") -> Iterator[pb.Chunk]:
    """Ask for the journal from a place on; the call's errors are those of the catalogue."""
    client = ServiceClient(place.service)
    request = pb.ReadRequest(epoch=place.service.epoch, journal=journal, start=start)
    metadata = (("authorization", f"Bearer {token}"),) if token else client.metadata
    call = client.stub.Read(request, timeout=CALL_S, metadata=metadata)
    try:
        yield from call
    except grpc.RpcError as error:
        raise client.failure(error) from error
    finally:
        call.cancel()


def pieces(place: Place, start: int) -> Iterator[bytes]:
    """Yield whole frames as they come."""
    joiner = ChunkJoiner()
    for chunk in tail(place, start, place.service.store):
        assert 0 < len(chunk.data) <= CHUNK_BYTES
        if (data := joiner.take(chunk)) is not None:
            yield data


def connect(place: Place) -> socket.socket:
    """Connect to the gateway's source."""
    return socket.create_connection(place.host._part.addresses()[0], timeout=30)


def test_a_message_comes_at_once_whatever_came_before(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place, connect(listening(place)) as sender:
        found = pieces(place, 0)
        for count in range(20):
            sender.sendall(struct.pack(">I", 2) + b"%02d" % count)
            data = next(found)
            assert data.endswith(b"%02d" % count)
            assert data.count(b"WFR1") == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_whole_journal_comes_however_it_grows_and_wherever_one_begins(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    with serving("gateway", tmp_path) as place, connect(listening(place)) as sender:
        got, found = b"", pieces(place, 0)
        for _ in range(30):
            sizes = draw.choices((1, 50, 5000, 3_000_000), (4, 4, 4, 1), k=draw.randint(1, 3))  # some frames are large
            sender.sendall(b"".join(struct.pack(">I", size) + draw.randbytes(size) for size in sizes))
            got += next(found)
            if draw.random() < 0.3:
                found.close()  # type: ignore[attr-defined]
                found = pieces(place, len(got))
        journal = JournalReader(tmp_path / "journal")
        while len(got) < journal.end().offset:
            got += next(found)
        assert got == b"".join(journal.read(0, journal.end().offset))


def test_another_driver_ends_the_call(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place:
        with connect(listening(place)) as sender:
            sender.sendall(struct.pack(">I", 1) + b"a")
            found = tail(place)
            next(found)
            place.attach("d2")
            assert code_of(lambda: next(found)) == "R644"
        assert code_of(lambda: next(tail(place))) == "R644"


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place:
        listening(place)
        assert code_of(lambda: next(tail(place, journal="00000000000000aa"))) == "R698"
        assert code_of(lambda: next(tail(place, start=1))) == "R698"
        assert code_of(lambda: next(tail(place, token="another-token-of-many-characters"))) == "R641"
