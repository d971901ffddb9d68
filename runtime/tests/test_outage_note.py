"""A remote gateway or egress that is away: noted once, and once when it is back."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as some

from wallaroo_runtime.peer import peer as peer_module
from wallaroo_runtime.peer.peer import AWAY_NOTE_S, Peer
from wallaroo_runtime.service.client import Away
from wallaroo_runtime.service.endpoint import Service


@given(some.lists(some.tuples(some.booleans(), some.floats(0.1, 4.0)), max_size=30))
def test_an_outage_is_noted_once_and_so_is_its_end(looks: list[tuple[bool, float]]) -> None:
    peer, now, said = Peer(Service("egress", "h:1")), 100.0, list[str]()
    wanted, since, is_noted = list[str](), 0.0, False
    with patch.object(peer_module.time, "monotonic", lambda: now):
        for is_away, seconds in looks:
            now += seconds
            if is_away:
                peer._miss(Away([]))
            else:
                peer._away = None
            peer._note_outage(said.append)
            since = (since or now) if is_away else 0.0
            if is_away and not is_noted and now - since >= AWAY_NOTE_S:
                is_noted = True
                wanted.append("the egress at h:1 is away; the run waits for it 60 s at most")
            elif not is_away and is_noted:
                is_noted = False
                wanted.append("the egress at h:1 is back")
    assert said == wanted
