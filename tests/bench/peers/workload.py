"""The workloads: their records, their sizes, and what a plain program in Python makes of them."""

import functools
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from string import ascii_lowercase
from typing import NamedTuple

WORDS, KEYED, JSON = "words", "keyed", "json"
SIZES = ("whole", "short", "tiny")
VOCABULARY, LINE_WORDS, USERS = 5000, 8, 1000


class Record(NamedTuple):
    """A record of a topic; an empty key is none."""

    key: str
    value: str


class Workload(NamedTuple):
    """What is done, and with how much.

    Attributes:
        kind: What the programs do: `words`, `keyed` or `json`.
        amounts: Records by size; of `w2` seconds.
        batch: At most so many records in a micro-batch.
        commit_ms: Between commits, where a contender has that.
    """

    kind: str
    amounts: Mapping[str, int]
    batch: int
    commit_ms: int = 1000


def _amounts(*amounts: int) -> Mapping[str, int]:
    return dict(zip(SIZES, amounts, strict=True))


WORKLOADS = {
    "w1": Workload(WORDS, _amounts(250_000, 100_000, 2_000), 20_000),
    "w2": Workload(KEYED, _amounts(20, 10, 5), 100_000, commit_ms=100),
    "w3": Workload(KEYED, _amounts(2_000_000, 400_000, 10_000), 300_000),
    "w4": Workload(JSON, _amounts(2_000_000, 200_000, 5_000), 300_000),
    "start": Workload(WORDS, _amounts(1, 1, 1), 20_000),
    "w5": Workload(WORDS, _amounts(10_000, 7_000, 3_000), 20_000),
}


@functools.cache
def vocabulary() -> tuple[str, ...]:
    """Return the words of all lines."""
    source = random.Random(11)
    return tuple({"".join(source.choices(ascii_lowercase, k=source.randint(2, 9))): None for _ in range(VOCABULARY)})


def lines(number: int) -> Iterator[Record]:
    """Yield lines of drawn words."""
    source, words = random.Random(12), vocabulary()
    for _ in range(number):
        yield Record("", " ".join(source.choices(words, k=LINE_WORDS)))


def messages(number: int) -> Iterator[Record]:
    """Yield two messages of each key, in drawn order."""
    keys = [key for key in range((number + 1) // 2) for _ in range(2)][:number]
    random.Random(13).shuffle(keys)
    for place, key in enumerate(keys):
        yield Record(f"k{key:07}", f"k{key:07} {place}")


def readings(number: int) -> Iterator[Record]:
    """Yield readings of sensors as JSON."""
    source = random.Random(14)
    for place in range(number):
        reading = {
            "id": place,
            "user": f"user-{source.randrange(USERS):04}",
            "fahrenheit": source.randrange(330, 1100),
            "place": f"hall {source.randrange(99)}, row {source.randrange(99)}",
            "time": f"2026-11-26T12:{place // 60 % 60:02}:{place % 60:02}Z",
            "tags": ["indoor", "sensor", f"b{source.randrange(9)}"],
            "note": "x" * 30,
        }
        yield Record("", json.dumps(reading))


RECORDS = {WORDS: lines, KEYED: messages, JSON: readings}


def results(kind: str, records: Iterable[Record]) -> Iterator[Record]:
    """Yield what comes of records."""
    counts: Counter[str] = Counter()
    for key, value in records:
        if kind == WORDS:
            for word in value.split():
                counts[word] += 1
                yield Record(word, f"{word} => {counts[word]}")
        elif kind == KEYED:
            counts[key] += 1
            yield Record(key, f"{key} => {counts[key]} {value.split()[1]}")
        else:
            reading = json.loads(value)
            celsius = (reading["fahrenheit"] - 320) * 50 // 9
            yield converted(reading["user"], reading["id"], reading["user"].upper(), celsius, reading["place"])


def converted(key: str, number: int, user: str, celsius: int, place: str) -> Record:
    """Return a converted reading in the one form that is compared."""
    return Record(key, f"{number} {user} {celsius} {place}")


def plain(kind: str, key: bytes | None, value: bytes | None) -> Record:
    """Return a result as it is compared: of JSON spaces and the order of names mean nothing."""
    name, text = (key or b"").decode(errors="replace"), (value or b"").decode(errors="replace")
    if kind != JSON:
        return Record(name, text)
    try:
        found = json.loads(text)
        return converted(name, found["id"], found["user"], found["celsius"], found["place"])
    except (ValueError, LookupError, TypeError):
        return Record(name, text)


def ordered(kind: str, records: Iterable[Record]) -> dict[Record, int]:
    """Return the results of records, each with its place among those of its key; 0: they have no order."""
    places: Counter[str] = Counter()
    found = {}
    for result in results(kind, records):
        places[result.key] += kind != JSON
        found[result] = places[result.key]
    return found


@functools.lru_cache(maxsize=1)
def expected(kind: str, number: int) -> Mapping[Record, int]:
    """Return the reference for the first records of a kind; contenders follow one another with the same."""
    return ordered(kind, RECORDS[kind](number))
