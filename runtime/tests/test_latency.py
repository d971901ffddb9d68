"""Latencies that the egress counts, and what a monitor makes of them, against simple references."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo.message.frame import PLAIN
from wallaroo_runtime.egress import latency as module
from wallaroo_runtime.egress.latency import COARSE_MS, LatencyMeter
from wallaroo_runtime.gateway.intake import Gathered, Intake
from wallaroo_runtime.gateway.source_progress import SourceProgress
from wallaroo_runtime.monitor.delivery import STAGES, Latencies, Latency
from wallaroo_runtime.service.histogram import STEP, Histogram
from wallaroo_runtime.storage.journal.writer import JournalWriter

PORTS = (1, 2)
GROUPS = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, 30), st.integers(1, 9), max_size=3),  # messages by age
        st.dictionaries(st.sampled_from(PORTS), st.integers(1, 4)),  # results by port
    ),
    max_size=15,
)


def counts(values: Counter[int]) -> dict[int, int]:
    histogram = Histogram()
    for value, count in values.items():
        histogram.add(value, count)
    return histogram.to_counts()


@settings(deadline=None)
@given(GROUPS, st.data())
def test_a_message_ends_when_the_last_sink_has_its_output(groups: list[Any], data: Any) -> None:
    now = 1000
    latencies = LatencyMeter(lambda: now)
    published, taken = Counter[int](), Counter[int]()
    waiting: list[tuple[dict[int, int], dict[int, int], int]] = []
    whole, output, deliver, commit = (Counter[int]() for _ in range(4))

    def take(port: int, count: int) -> None:
        """Let a sink take messages, in a transaction or not."""
        nonlocal now
        written = None
        if data.draw(st.booleans()):
            latencies.write(port)
            written, now = now, now + data.draw(st.integers(0, 50))
        taken[port] = count
        latencies.take(port, count)
        end(written)

    def end(written: int | None = None) -> None:
        """Count what all of its sinks have; sinks take groups in order, but each at its own pace."""
        for group in list(waiting):
            ends, arrived, since = group
            if all(taken[port] >= end for port, end in ends.items()):
                waiting.remove(group)
                for time, count in arrived.items():
                    whole[now - time] += count
                if ends and arrived:
                    deliver[(now if written is None else written) - since] += sum(arrived.values())
                if written is not None:
                    commit[now - written] += sum(arrived.values())

    for ages, results in groups:
        arrived = {now - age: count for age, count in ages.items()}
        published.update(results)
        ends = {port: published[port] for port in results}
        for port in data.draw(st.lists(st.sampled_from(PORTS), max_size=2)):  # a sink may be faster than the report
            take(port, data.draw(st.integers(taken[port], published[port])))
        computed = data.draw(st.integers(now - 50, now))
        latencies.publish(ends, arrived, now, computed)
        output[now - computed] += sum(arrived.values())
        waiting.append((ends, arrived, now))
        end()
        now += data.draw(st.integers(0, 50))
    for port in PORTS:
        take(port, published[port])
    assert not waiting
    expected = {"output": output, "deliver": deliver, "commit": commit, "end_to_end": whole}
    assert latencies.to_json() == {part: counts(values) for part, values in expected.items()}


TOPIC, TABLE, SENDER = 1, 2, 3  # ports


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([TOPIC, TABLE, SENDER]),
            st.integers(1, 9),
            st.lists(st.integers(0, 99), min_size=7, max_size=7),  # milliseconds of each part
        ),
        max_size=12,
    ),
    st.booleans(),
)
def test_each_message_counts_once_in_each_part_and_parts_add_up(frames: list[Any], commits: bool) -> None:
    """Gateway and egress measure what they do; the engine is the reference's."""
    sums, expected, results, now = Counter[str](), Counter[str](), 0, 1_000_000
    latencies, meter = Latencies(), LatencyMeter(lambda: now)
    with TemporaryDirectory() as name:
        writer = JournalWriter(Path(name))
        intake = Intake(writer, "never", 0.0, 1 << 40, SourceProgress(Path(name), (), (), [TOPIC]), lambda: None)
        intake.now_ms = lambda: now
        for turn, (port, count, spent) in enumerate(frames):
            spent = dict(zip(STAGES[:-1], spent, strict=True))
            begun = now
            if port == SENDER:
                intake.take(port, count, bytes(count))
                del spent["read"]
            else:
                now += spent["read"]
                read_ms = now if port == TOPIC else 0
                intake.take_whole(Gathered(port, begun, count, 1, [b"x"], 1, PLAIN, {(TOPIC, 0): 1}, read_ms))
            now += spent["journal"]
            intake.turn(float(turn))
            if port == TABLE:
                continue
            latencies.add({stage: {spent[stage]: count} for stage in ("wait", "compute")}, 0.0)
            now += spent["wait"] + spent["compute"]
            computed, results = now, results + count
            now += spent["output"]
            meter.publish({5: results}, {begun: count}, now, computed)
            now += spent["deliver"]
            if commits:
                meter.write(5)
                now += spent["commit"]
            else:
                del spent["commit"]
            meter.take(5, results)
            spent["end_to_end"] = now - begun
            expected.update(dict.fromkeys(spent, count))
            sums.update({stage: ms * count for stage, ms in spent.items()})
        gateway = {"pid": 1, **json.loads(json.dumps(intake.status()))}
        assert not intake.close()
    egress = {"pid": 2, "live": {"latency_ms": json.loads(json.dumps(meter.to_json()))}}
    for _ in range(2):
        latencies.look_at([gateway], 0.0)
        latencies.look_at([{}], 0.0)  # it is not known for a moment
        latencies.look(egress, now, 0.0)
    found = {stage: each.total for stage, each in latencies.histograms().items()}
    assert {stage: each.count for stage, each in found.items()} == {stage: expected[stage] for stage in STAGES}
    for stage, each in found.items():
        assert sums[stage] <= each.sum_ms <= sums[stage] * STEP
    assert sum(sums.values()) == 2 * sums["end_to_end"]
    shown = latencies.to_json(0.0)
    assert {stage for stage in STAGES if shown[stage]["run"]["mean"] is None} == set(STAGES) - expected.keys()


def test_while_a_receiver_is_away_groups_join(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MOST_GROUPS", 2)
    now = 5000
    latencies = LatencyMeter(lambda: now)
    for number in range(1, 10):
        latencies.publish({1: number, 2: number}, {1000 + number: 1}, 1000)
    latencies.publish({}, {now: 4}, now)  # what waits for nobody ends at once
    assert latencies.to_json()["end_to_end"] == counts(Counter({0: 4}))
    latencies.take(1, 9)
    latencies.take(2, 8)
    assert sum(latencies.to_json()["end_to_end"].values()) == 4 + 1
    latencies.take(2, 9)
    found = latencies.to_json()["end_to_end"]
    assert sum(found.values()) == 4 + 9
    assert set(found) == set(counts(Counter({0: 1, now - 1001: 1, now - 1002: 1, now - 1000: 1})))
    assert 1000 % COARSE_MS == 0


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(PORTS), st.integers(1, 4), min_size=1), max_size=40), st.integers(1, 4))
def test_one_receiver_away_leaves_few_groups_and_true_times(results: list[dict[int, int]], most: int) -> None:
    """Whichever sinks each group has output for, while the second sink goes on."""
    now = 1000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_GROUPS", most)
        latencies, published, at = LatencyMeter(lambda: now), Counter[int](), Counter[int]()
        for each in results:
            now += 50
            published.update(each)
            latencies.publish({port: published[port] for port in each}, {now: 1}, now)
            at[now] += 1 in each
            latencies.take(2, published[2])
            assert len(latencies._waiting[1]) <= most
        now += 10_000
        latencies.take(1, published[1])
    found = latencies.to_json()
    assert found["deliver"] == found["end_to_end"]
    assert sum(found["deliver"].values()) == len(results)
    late = [value for value, count in found["deliver"].items() for _ in range(count) if value]
    wanted = sorted(now - time for time, waits in at.items() if waits)
    assert len(late) == len(wanted)
    assert all(true <= value <= (true + COARSE_MS) * STEP for true, value in zip(wanted, sorted(late), strict=True))


@settings(deadline=None)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=200), st.integers(2, 16))
def test_a_receiver_that_is_away_for_days_leaves_few_times(pauses: list[int], most: int) -> None:
    now, sent = 100_000, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_GROUPS", 1)
        patch.setattr(module, "MOST_TIMES", most)
        latencies = LatencyMeter(lambda: now)
        for number, pause in enumerate(pauses, 1):
            now += pause
            sent.append(now)
            latencies.publish({1: number}, {now: 1}, now)
        group = latencies._waiting[1][-1][1]
        assert max(len(group.arrived), len(group.published)) <= most
        assert group.coarse_ms <= max(COARSE_MS, 4 * (sent[-1] - sent[0]) / most)
        coarse, now = group.coarse_ms, now + 10_000
        latencies.take(1, len(sent))
    found = latencies.to_json()
    assert found["deliver"] == found["end_to_end"]
    late = sorted(value for value, count in found["end_to_end"].items() for _ in range(count))
    true = sorted(now - time for time in sent)
    assert len(late) == len(true)
    assert all(a <= b <= (a + coarse) * STEP for a, b in zip(true, late, strict=True))


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["goes on", "begins again", "is not known"]),
            st.dictionaries(st.integers(0, 100), st.integers(1, 9), max_size=4),
        ),
        max_size=12,
    ),
    st.dictionaries(st.integers(0, 100), st.integers(1, 9)),
)
def test_what_an_egress_counts_is_counted_once(steps: list[tuple[str, dict[int, int]]], before: dict[int, int]) -> None:
    """Also when it outlived its driver, was killed, or could not be asked."""
    pid, counted, expected = 1, Counter(before), Counter[int]()

    def status() -> dict[str, Any]:
        whole = {str(ms): count for ms, count in counted.items()}
        return {"pid": pid, "start_time": 9, "sinks": [], "live": {"latency_ms": {"end_to_end": whole}}}

    latencies = Latencies()
    latencies.begin(status())
    for what, more in steps:
        if what == "is not known":
            latencies.look({}, 0, 0.0)
            continue
        if what == "begins again":
            pid, counted = pid + 1, Counter()
        counted.update(more)
        expected.update(more)
        latencies.look(status(), 0, 0.0)
        latencies.look(status(), 0, 0.0)
    found = latencies.histograms()["end_to_end"].total
    assert found.to_counts() == counts(expected)
    assert found.max_ms == max(expected, default=0)


def test_what_was_not_counted_has_no_percentiles() -> None:
    latency = Latency()
    latency.add({3470: 0}, 0.0)
    nothing = Histogram().to_json()
    assert latency.to_json(1.0) == {"five_minutes": nothing, "run": nothing}
    assert nothing.pop("count") == 0
    assert set(nothing.values()) == {None}
