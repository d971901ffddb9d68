"""The checks of `make bench-peers`: whatever a contender writes wrongly is counted, and said next to its figure."""

import json
import random
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bench.peers.contender import BASE
from bench.peers.table import tables
from bench.peers.verdict import Verdict, compare
from bench.peers.workload import JSON, KEYED, RECORDS, WORDS, Record, expected, ordered, plain, results

DRAWN = st.randoms(use_true_random=False)
KINDS = st.sampled_from([WORDS, KEYED, JSON])


def written(kind: str, number: int) -> list[Record]:
    """Return what a contender that does all right writes."""
    return [*results(kind, RECORDS[kind](number))]


@given(KINDS, st.integers(1, 200), DRAWN)
def test_results_in_any_order_of_keys_are_exact(kind: str, number: int, source: random.Random) -> None:
    places = ordered(kind, RECORDS[kind](number))
    found = [*places]
    source.shuffle(found)
    found.sort(key=lambda result: places[result])
    assert compare(expected(kind, number), found) == Verdict()
    assert compare(expected(kind, number), found).text() == "exact"


@given(KINDS, st.integers(20, 200), st.sets(st.integers(0, 19)), st.sets(st.integers(0, 19)), DRAWN)
def test_what_is_missing_and_what_comes_again_is_counted(
    kind: str, number: int, missing: set[int], again: set[int], source: random.Random
) -> None:
    found = written(kind, number)
    places = source.sample(range(len(found)), len(found))
    gone, twice = {places[at] for at in missing}, {places[at] for at in again - missing}
    given_ = [result for at, result in enumerate(found) if at not in gone]
    given_ += source.sample([found[at] for at in twice], len(twice))
    assert compare(expected(kind, number), given_) == Verdict(missing=len(gone), repeated=len(twice))


@given(KINDS, st.integers(1, 200), DRAWN)
def test_wrong_values_and_wrong_keys_are_counted(kind: str, number: int, source: random.Random) -> None:
    found = written(kind, number)
    at = source.randrange(len(found))
    key, value = found[at]
    found[at] = source.choice([Record(key, value + "0"), Record(key + "x", value), Record("", value), Record(key, "")])
    assert compare(expected(kind, number), found) == Verdict(missing=1, wrong=1)


@given(st.sampled_from([WORDS, KEYED]), st.integers(100, 300), DRAWN)
def test_results_out_of_order_within_their_key_are_counted(kind: str, number: int, source: random.Random) -> None:
    found = written(kind, number)
    first, second = source.choice([*_pairs(found)])
    found[first], found[second] = found[second], found[first]
    assert compare(expected(kind, number), found) == Verdict(disordered=1)


def _pairs(found: list[Record]) -> dict[tuple[int, int], None]:
    """Return the places of results that follow one another within their key."""
    last: dict[str, int] = {}
    pairs: dict[tuple[int, int], None] = {}
    for at, result in enumerate(found):
        if result.key in last:
            pairs[last[result.key], at] = None
        last[result.key] = at
    return pairs


def test_counts_too_high_after_a_kill_are_wrong() -> None:
    counts = [Record("ann", f"ann => {count} x") for count in (1, 2, 4)]
    reference = ordered(KEYED, [Record("ann", "ann x")] * 3)
    assert compare(reference, counts) == Verdict(missing=1, wrong=1)
    assert compare(reference, counts).text() == "1 missing, 1 wrong"
    assert compare(reference, counts[:2]).text(is_whole=False) == "exact so far"


def test_json_is_compared_by_what_it_says() -> None:
    said = {"place": "p", "celsius": 5, "user": "ANN", "id": 7}
    texts = [json.dumps(said), json.dumps(said, indent=1, sort_keys=True)]
    assert {plain(JSON, b"ann", text.encode()) for text in texts} == {Record("ann", "7 ANN 5 p")}
    assert plain(JSON, b"ann", b"[]") == Record("ann", "[]")
    assert plain(JSON, None, None) == Record("", "")


def run(name: str, work: str, **figures: Any) -> dict[str, Any]:
    """Return a line of the results."""
    about: Mapping[str, Any] = {"commit": "c", "size": "short", "cores": 2, "turn": 0, "load": 1.5, "is_whole": True}
    return {**about, "contender": name, "work": work, **figures}


def test_the_tables_say_what_is_not_as_it_should_be() -> None:
    runs = [
        run(BASE, "w1", per_s=1000.0, text="exact", memory_mb=100),
        run(BASE, "w1", per_s=3000.0, text="exact", memory_mb=300),
        run("goka", "w1", per_s=500.0, text="exact so far", memory_mb=20, is_whole=False),
        run("goka", "w5", recovery_s=1.25, text="7 wrong", memory_mb=30),
        run("bytewax", "w1", failed="no result in 180 s"),
    ]
    text = tables(runs, {"quix": "no network"})
    for line in (
        "| Kafka Streams (Java) | exactly once | 2,000, exact | - | - | - | - | - | - | 100-300 |",
        "| Goka | at least once | 500, incomplete, exact so far | - | - | - | - | - | 1.2, 7 wrong | 20-30 |",
        "| Goka | 0.25, incomplete, exact so far | - | - | - | - | - | - | 0.12 |",
        "| Quix Streams | exactly once | not installed: no network |",
        "- bytewax, w1: no result in 180 s",
        "Commit c, size short, turns: 1, 2 processors; load average at the start of a run 1.5 to 1.5.",
    ):
        assert line in text.splitlines()
