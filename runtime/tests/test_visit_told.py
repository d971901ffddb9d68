"""What visits came to in real-time mode, told to a gateway that may be away."""

import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.run import wait_until
from support.service import close_channels, listening, serving
from wallaroo_runtime.peer import peer as module
from wallaroo_runtime.peer.peer import Peer
from wallaroo_runtime.service.client import Away
from wallaroo_runtime.spark.realtime.visits import VisitCounts
from wallaroo_runtime.storage.journal.visit import Visited, read_visited

COUNTS = {7: (3, 1)}


def test_a_gateway_that_is_away_costs_one_short_wait_and_is_told_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STATUS_CALL_S", 0.5)
    monkeypatch.setattr(module, "AWAY_STATUS_S", 0.1)
    with serving("gateway", tmp_path) as place:
        peer = Peer(listening(place).service)
        peer.tell_done(COUNTS, 5)
        assert read_visited(tmp_path / "journal") == Visited(COUNTS, 5)
    host, _, port = peer.service.address.rpartition(":")
    with socket.create_server((host, int(port))):  # it takes connections, and answers nothing
        begun = time.monotonic()
        for _ in range(20):
            with pytest.raises(Away):
                peer.tell_done({8: (4, 0)}, 9)
            assert not peer.commit(9)
        assert time.monotonic() - begun < 5, "each call has waited"
    close_channels()

    def is_told() -> bool:
        peer.status()
        try:
            peer.tell_done({8: (4, 0)}, 9)
        except Away:
            return False
        return True

    with serving("gateway", tmp_path, peer.service.address):
        wait_until(is_told, lambda: "a gateway that is back")
        assert read_visited(tmp_path / "journal") == Visited(COUNTS | {8: (4, 0)}, 9)
        assert peer.commit(0)


class Gateway:
    """Takes counts while it is there."""

    def __init__(self) -> None:
        self.is_away, self.known, self.done = False, dict[int, tuple[int, int]](), 0

    def take(self, counts: Mapping[int, tuple[int, int]], done: int) -> None:
        if self.is_away:
            raise Away([])
        assert done > self.done, "nothing is told twice"
        self.known |= counts
        self.done = done


steps = st.lists(st.tuples(st.booleans(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3)))


@given(drawn=steps)
def test_each_visit_is_counted_once_and_told_once_the_gateway_is_there(
    drawn: list[tuple[bool, list[tuple[int, int]]]],
) -> None:
    ended: dict[int, tuple[int, int]] = {}
    gateway = Gateway()

    def read(after: int) -> str:
        late = {number: list(counts) for number, counts in ended.items() if number > after}
        return json.dumps({"offset": 10 * len(ended), "visits": late})

    counts = VisitCounts(read, gateway.take)
    for is_away, more in [*drawn, (False, [])]:
        gateway.is_away = is_away
        ended |= {len(ended) + number: each for number, each in enumerate(more, 1)}
        assert counts.tell(len(ended)) == (gateway.known == ended)
        assert not is_away or gateway.known.items() <= ended.items()
        assert counts.counts == {"visits": len(ended), "visited_keys": sum(keys for keys, _ in ended.values())}
    assert (gateway.known, gateway.done) == (ended, 10 * len(ended))
