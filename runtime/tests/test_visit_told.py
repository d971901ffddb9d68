"""What visits came to in real-time mode, told to a gateway that may be away."""

import socket
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.run import wait_until
from support.service import close_channels, listening, serving
from wallaroo_runtime.peer import peer as module
from wallaroo_runtime.peer.peer import Peer
from wallaroo_runtime.service.client import Away
from wallaroo_runtime.spark.realtime.visits import VisitReports
from wallaroo_runtime.storage.journal.visit import Visited, read_visited
from wallaroo_runtime.worker.step_count import VisitCounts

COUNTS = {7: Counter(keys=3, failed=1)}
OTHER = {8: Counter(keys=4, failed=0)}


def test_a_gateway_that_is_away_costs_one_short_wait_and_is_told_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STATUS_CALL_S", 0.5)
    monkeypatch.setattr(module, "AWAY_STATUS_S", 0.1)
    with serving("gateway", tmp_path) as place:
        peer = Peer(listening(place).service)
        peer.tell_visits(COUNTS, 5)
        assert read_visited(tmp_path / "journal") == Visited({7: (3, 1)}, 5)
    host, _, port = peer.service.address.rpartition(":")
    with socket.create_server((host, int(port))):  # it takes connections, and answers nothing
        begun = time.monotonic()
        for _ in range(20):
            with pytest.raises(Away):
                peer.tell_visits(OTHER, 9)
            assert not peer.commit(9)
        assert time.monotonic() - begun < 5, "each call has waited"
    close_channels()

    def is_told() -> bool:
        peer.status()
        try:
            peer.tell_visits(OTHER, 9)
        except Away:
            return False
        return True

    with serving("gateway", tmp_path, peer.service.address):
        wait_until(is_told, lambda: "a gateway that is back")
        assert read_visited(tmp_path / "journal") == Visited({7: (3, 1), 8: (4, 0)}, 9)
        assert peer.commit(0)


class Gateway:
    """Takes counts while it is there."""

    def __init__(self) -> None:
        self.is_away, self.known, self.done = False, VisitCounts(), 0

    def take(self, counts: VisitCounts, done: int) -> None:
        if self.is_away:
            raise Away([])
        assert counts and not counts.keys() & self.known.keys(), "nothing is told twice"
        assert done > self.done
        self.known |= counts
        self.done = done


steps = st.lists(st.tuples(st.booleans(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3)))


@given(drawn=steps)
def test_each_visit_is_counted_once_and_told_once_the_gateway_is_there(
    drawn: list[tuple[bool, list[tuple[int, int]]]],
) -> None:
    ended: VisitCounts = {}
    gateway = Gateway()
    reports = VisitReports(gateway.take)
    for is_away, more in [*drawn, (False, [])]:
        gateway.is_away = is_away
        ended |= {len(ended) + number: Counter(keys=keys, failed=bad) for number, (keys, bad) in enumerate(more, 1)}
        visits = {str(number): dict(counts) for number, counts in ended.items()}
        reports.take({"offset": 10 * len(ended) + 5, "visits": visits, "barrier": 10 * len(ended)})
        assert reports.last == len(ended)
        assert reports.tell() == (gateway.known == ended)
        assert not is_away or gateway.known.items() <= ended.items()
        assert reports.counts == {"visits": len(ended), "visited_keys": sum(each["keys"] for each in ended.values())}
    assert (gateway.known, gateway.done) == (ended, 10 * len(ended))
