"""Findings of a gateway or an egress that a new driver reports."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from hypothesis import given
from hypothesis import strategies as st

from support.run import wait_until
from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.frame import encode_frame
from wallaroo_runtime.egress.kafka_session import CREATE_TOPIC, Unavailable
from wallaroo_runtime.egress.kafka_sink import KafkaSink
from wallaroo_runtime.run.flow import Flow, lasting
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.live import OUTPUT, Entry
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.progress import Progress
from wallaroo_runtime.storage.record_count import Counted, RecordCount

NAMES = ["a", 'a"b', "ab"]
SINKS, SOURCES = [("sink", name) for name in NAMES], [("source", name) for name in NAMES]
Part = tuple[str, str]


def outage(part: Part, reason: str) -> Diagnostic:
    kind, name = part
    if kind == "source":
        return Diagnostic.of("R791", source=name, brokers="b:1", reason=reason)
    if name == "a":
        return Diagnostic.of("R613", sink=name, address="h:1", reason=reason, fix="")
    return Diagnostic.of("R613", sink=name, address="Kafka at b:1", reason=reason, fix="")


PART = st.sampled_from([*SINKS, *SOURCES])
EVENTS = st.lists(st.tuples(PART, st.sampled_from(["begins", "changes", "ends"])) | st.just("other"), max_size=20)


@given(EVENTS)
def test_only_outages_that_last_are_told_each_once(events: list[Any]) -> None:
    findings: list[Diagnostic] = []
    latest: dict[Part, Diagnostic] = {}  # of those that are away: their last finding
    others = []
    for number, event in enumerate(events):
        if event == "other":
            values = {"source": "a", "peer": str(number), "received": 1, "size": "2 bytes", "reason": ""}
            others.append(Diagnostic.of("R607", **values))  # type: ignore[arg-type]
            findings.append(others[-1])
        elif event[1] == "ends":
            latest.pop(event[0], None)
        elif event[1] == "begins" or event[0] in latest:
            latest[event[0]] = outage(event[0], str(number))
            findings.append(latest[event[0]])
    status = {
        "sinks": [_part(part, latest) for part in SINKS],
        "kafka": [_part(part, latest) for part in SOURCES],
        "diagnostics": [finding.to_json() for finding in findings],
    }
    away = [latest[part] for part in (*SINKS, *SOURCES) if part in latest]
    assert lasting(status) == [finding.to_json() for finding in [*others, *away]]


def _part(part: Part, away: Mapping[Part, Diagnostic]) -> dict[str, Any]:
    return {"name": part[1], "outage": away[part].to_json() if part in away else None}


STATES = st.sampled_from(["connecting", "connected", "half_closed", "unreachable"])


@given(st.lists(st.fixed_dictionaries({"a": STATES, "b": STATES}), max_size=12))
def test_a_sink_that_is_back_is_told_once(looks: list[dict[str, str]]) -> None:
    notes, wanted, away = list[str](), list[str](), set[str]()
    peers, query = Mock(gateways=[]), Mock(targets={})
    query.exception.return_value, query.progress.return_value = None, Progress()
    flow = Flow(peers, query, notes.append, "", Mock(), Mock())
    for look in looks:
        peers.egress.status.return_value = {
            "sinks": [{"port": ord(name), "name": "one", "state": state} for name, state in look.items()]
        }
        flow.check()
        wanted += ['sink "one" is reached again' for name in look if name in away and look[name] == "connected"]
        away = {name for name in look if look[name] == "unreachable" or (name in away and look[name] != "connected")}
    assert notes == wanted


LOOKS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.sampled_from(["there", "away", "waits"]), min_size=2, max_size=2))
)


@given(LOOKS)
def test_gateways_release_what_is_processed_once_they_are_there(looks: list[tuple[int, list[str]]]) -> None:
    """One that is away keeps neither the run nor the others; one that waits gets it again."""
    known, states, told = [-1, -1], ["there", "there"], list[int]()

    def gateway(number: int) -> Mock:
        def commit(offset: int) -> bool:
            told.append(number)
            if states[number] != "away":
                known[number] = offset
            return states[number] != "away"

        return Mock(commit=commit, status=lambda: {"reads": states[number] != "waits"})

    peers, query, offset = Mock(gateways=[gateway(0), gateway(1)]), Mock(targets={}), 0
    peers.egress.status.return_value = {}
    query.exception.return_value = None
    flow = Flow(peers, query, Mock(), "", Mock(), Mock())
    for moved, states[:] in looks:
        offset += moved
        query.progress.return_value = Progress(offsets=(offset, 10 * offset))
        due = [each for each in (0, 1) if known[each] != (offset, 10 * offset)[each] or states[each] == "waits"]
        told.clear()
        flow.check()
        assert told == due
        assert all(known[each] == (offset, 10 * offset)[each] for each in (0, 1) if states[each] != "away")


COUNTS = st.fixed_dictionaries(dict.fromkeys(("taken", "refused", "written", "failed"), st.integers(0, 9)))


@given(received=st.integers(0, 9), processed=st.integers(0, 9), before=COUNTS, now=COUNTS)
def test_what_was_processed_has_come(
    received: int, processed: int, before: dict[str, int], now: dict[str, int]
) -> None:
    """A message that a sink refuses is a dead letter, in each run."""
    sums = {name: before[name] + now[name] for name in now}
    delivered, refused = Peers.delivered, Peers.refused
    peers, query = Mock(gateways=[], received_before=0), Mock(targets={})
    peers.delivered_before, peers.refused_before = before["taken"], before["refused"]
    sink = {"messages": sums["taken"], "refused": sums["refused"], "pending_messages": 0}
    peers._of_sinks = lambda name: Peers._of_sinks(peers, name)
    peers.delivered, peers.refused = lambda: delivered(peers), lambda: refused(peers)
    peers.received.return_value, peers.egress.status.return_value = received, {"sinks": [sink]}
    records = RecordCount(None, *(Counted(sent=each["written"]) for each in (sums, before)))
    letters = {"dead_letters": sums["failed"], "dead_letters_before": before["failed"]}
    query.progress.return_value = Progress(messages_in=processed, records=records, **letters)
    snapshot = Flow(peers, query, Mock(), "", Mock(), Mock()).snapshot("stopped")
    assert (snapshot.messages_in, snapshot.lag) == (max(received, processed), max(0, received - processed))
    for counts, messages_out, dead_letters in (
        (sums, snapshot.messages_out, snapshot.dead_letters),
        (now, snapshot.run["messages_out"], snapshot.run["dead_letters"]),
    ):
        assert messages_out == counts["taken"] + counts["written"]
        assert dead_letters == counts["failed"] + counts["refused"]


def test_a_status_that_is_not_there_yet() -> None:
    assert lasting({}) == []


def test_a_topic_that_is_missing_is_one_outage(tmp_path: Path) -> None:
    """Brokers that answer, and take nothing: the sink is reached when they have the record."""
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    live = LiveLog(outbox, tmp_path)
    live.append(Entry(OUTPUT, 3, sequence=0, count=1, content=encode_frame([b"a"], port=3)))
    said, states, session = list[Diagnostic](), list[str](), Mock()
    config = pb.Sink(port=3, name="out", kafka=pb.KafkaTopic(topic="gone", brokers=["h:1"]))
    sink = KafkaSink(config, outbox, said.append)
    sink._session = lambda: session  # type: ignore[method-assign]

    def write(*_: object) -> None:
        states.append(sink.state)
        if len(states) < 4:
            reason = "it has no topic gone"
            raise Unavailable(reason, CREATE_TOPIC)

    session.write = write
    sink.start()
    wait_until(lambda: sink.position.messages == 1 and sink.state == "connected", lambda: f"{states}")
    time.sleep(0.1)
    sink.drain()
    assert sink.join(10)
    live.close()
    assert states == ["connected", "unreachable", "unreachable", "unreachable"]
    assert [finding.code for finding in said] == ["R613"]
