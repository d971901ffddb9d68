"""What the monitor shows of a query in real-time mode, against sums of what its operators report."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.monitor.board import Board, Sample
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.spark.batch_report import LiveReports
from wallaroo_runtime.topology.load import load

WORD_COUNT = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid" / "word_count.json"
BACKLOG, END = 90, 400  # bytes of the journal: not committed, and all
GATEWAY = {"backlog_bytes": BACKLOG, "end": END, "latency_ms": {"journal": {"4": 6}}}
STEP_COUNTS = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2))
NAMES = ("messages_in", "messages_out", "dead_letters")
LIVE_NUMBERS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(["0/sources/0", "0/steps/0", "0/steps/1"]), STEP_COUNTS),
        st.dictionaries(st.integers(0, 3), st.tuples(st.integers(0, 9), st.integers(0, 99))),
        st.dictionaries(
            st.sampled_from(["wait", "compute", "end_to_end"]), st.dictionaries(st.integers(0, 9), st.integers(1, 9))
        ),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(LIVE_NUMBERS, st.integers(0, 500), st.integers(0, 400) | st.none())
def test_parts_of_real_time_mode_are_sums_of_its_reports(
    drawn: list[Any], processed: int, committed: int | None
) -> None:
    """The operators give sums since the query began, and times since they were asked last."""
    topology = load(WORD_COUNT.read_bytes())
    board = Board(topology, compile_topology(topology, shuffle_partitions=2), Path("none"))
    board.begin({})
    reports, sums, stores = LiveReports(), dict[str, list[int]](), dict[int, tuple[int, int]]()
    times = {"journal": Counter({4: 6})} if drawn else {}  # in micro-batches `wait` includes it
    for steps, sizes, taken in drawn:
        for path, counts in steps.items():
            sums[path] = [a + b for a, b in zip(sums.get(path, [0, 0, 0]), counts, strict=True)]
        stores.update(sizes)
        for stage, more in taken.items():
            times.setdefault(stage, Counter()).update(more)
        named = {path: dict(zip(NAMES, counts, strict=True)) for path, counts in sums.items()}
        numbers = {"offset": processed, "steps": named, "stores": {"s1": stores}, "times": taken}
        board.tell_live(reports.read(json.loads(json.dumps(numbers))))
        board.look({})
    board.update("running", Sample({}, [GATEWAY], processed=[] if committed is None else [committed]))
    found = board.read()
    assert {part["path"]: [part[name] for name in NAMES] for part in found["parts"]} == {
        part["path"]: sums.get(part["path"], [0, 0, 0]) for part in found["parts"]
    }
    (state,) = found["states"]
    assert [state["keys"], state["bytes"]] == [sum(column) for column in zip((0, 0), *stores.values(), strict=True)]
    for stage, latency in found["latency_ms"].items():
        counts = times.get(stage, Counter())
        assert (latency["run"]["count"], latency["run"]["max"]) == (counts.total(), max(counts, default=None))
    done = max(processed if drawn else 0, committed or 0)
    assert found["gateways"][0]["lag_bytes"] == min(BACKLOG, max(0, END - done))


def test_the_lag_of_micro_batches_is_what_none_has_committed() -> None:
    """A gateway hears of a micro-batch when the next one begins, which never happens without messages."""
    topology = load(WORD_COUNT.read_bytes())
    board = Board(topology, compile_topology(topology, shuffle_partitions=2), Path("none"))
    for processed, lag in (((), [90, 90]), ((END, END), [0, 0]), ((END - 50, END), [50, 0])):
        board.update("running", Sample({}, [GATEWAY, GATEWAY], processed=processed))
        assert [gateway["lag_bytes"] for gateway in board.read()["gateways"]] == lag
