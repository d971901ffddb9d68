"""The conformance application through the engine in memory: drawn texts against what its README says."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from conformance.application import ARGS
from support.run import TESTS
from wallaroo.testing import Run, run

CLOSED = (0, 1, 7, (1 << 64) - 1)  # the keys of state `numbers`
KEYS = some.sampled_from(("a", "b", "é", "k 1"))
OPS = some.sampled_from(
    (":add", "", ":boom", ":wrong pair", ":silent", ":keep:xyz", ":bytes", ":unencodable", ":wrong encoding", ":unsent")
)
ITEM = some.builds("".join, some.tuples(KEYS, OPS)) | some.sampled_from(("none", "", "wrong key"))
LINE = some.lists(ITEM, min_size=1, max_size=4).map(",".join)
ALONE = some.sampled_from(("skip", "drop", "raise", "nothing", "raise multi", "wrong multi", b"\xff"))
WORDS = some.lists(LINE | ALONE, max_size=8)
NUMBER = some.builds(
    "{}{}".format, some.sampled_from((*CLOSED, 300)), some.sampled_from(("", ":é", ":boom", ":nothing"))
)
NUMBERS = some.lists(NUMBER | some.just("no number") | some.just("skip"), max_size=8)


@pytest.fixture(scope="module", params=["python", pytest.param("go", marks=pytest.mark.slow)])
def app(request: pytest.FixtureRequest) -> Iterator[Run]:
    path = TESTS / "conformance" / "app.py"
    if request.param == "go":
        path = Path(request.getfixturevalue("go_conformance"))
    with run(str(path), ARGS) as started:
        yield started


class Words:
    """The pipeline `Words`: states stay from one call to the next."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()

    def process(self, messages: list[str | bytes]) -> tuple[list[str], list[str]]:
        """Return what the sink gets, and the step of each dead letter."""
        given, failed = [], []
        for message in messages:
            if message in ("raise", "raise multi", "wrong multi", b"\xff"):
                failed.append({"raise": "act", b"\xff": "Words"}.get(message, "split"))
            elif message not in ("skip", "drop", "nothing"):
                for item in str(message).split(","):
                    self._item(item, given, failed)
        return given, failed

    def _item(self, item: str, given: list[str], failed: list[str]) -> None:
        key, _, rest = item.partition(":")
        op = rest.partition(":")[0] if ":" in item else "add"
        if item == "none":
            return
        if item in ("", "wrong key") or op in ("boom", "wrong pair"):
            failed.append("count")
            return
        self.totals[key] += 1
        if op in ("unencodable", "wrong encoding"):
            failed.append("Words")
        elif op not in ("silent", "unsent"):
            given.append(f"{op}:{key}={self.totals[key]};{len(item.encode())}")


class Numbers:
    """The pipeline `Numbers`; a message that fails leaves its state as it was."""

    def __init__(self) -> None:
        self.numbers: Counter[int] = Counter()
        self.tallies: Counter[str] = Counter()

    def process(self, messages: list[str]) -> tuple[list[str], list[str]]:
        """Return what the sink gets, and the step of each dead letter."""
        given, failed = [], []
        for message in messages:
            key = message.partition(":")[0]
            if message == "skip":
                continue
            if not key.isdecimal() or int(key) not in CLOSED or message.endswith(":boom"):
                failed.append("spread")
                continue
            self.numbers[int(key)] += 1
            for part in (1, 2) if not message.endswith(":nothing") else ():
                text = f"{message}/{self.numbers[int(key)]}/{part}".upper()
                name = text.partition(":")[0]
                self.tallies[name] += 1
                given.append(f"{self.tallies[name]} {text}")
        return given, failed


def test_words_and_numbers(app: Run) -> None:
    words, numbers = Words(), Numbers()

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(texts=WORDS, digits=NUMBERS)
    def holds(texts: list[str | bytes], digits: list[str]) -> None:
        for source, messages, reference in (("0", texts, words), ("1", digits, numbers)):
            app.clear()
            app.send([each if isinstance(each, bytes) else each.encode() for each in messages], source)
            expected, failed = reference.process(messages)
            assert sorted(each.decode() for each in app.output(source)) == sorted(expected)
            assert sorted(letter.step for letter in app.dead_letters) == sorted(failed)

    holds()
