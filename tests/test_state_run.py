"""`wallaroo state ls|get|dump` on a checkpoint of Spark's, in a directory and at a URL, after drawn messages."""

import json
import random
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.run import framed, wallaroo
from support.state import STATE, by_letter, totals
from support.word_bench import Bench

pytestmark = [pytest.mark.jvm, pytest.mark.long]


@pytest.fixture(params=["python", "go"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(request.param, tmp_path / "checkpoint")
    try:
        yield made
    finally:
        made.close()


def asked(*arguments: object) -> list[dict[str, Any]]:
    done = wallaroo("state", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_states_of_a_checkpoint(bench: Bench) -> None:
    draw = random.Random(7)
    words = [f"{draw.choice('abcxyz7')}{draw.randrange(30)}" for _ in range(400)]
    texts = [" ".join(draw.choices(words, k=8)) for _ in range(300)]
    bench.expect(texts)
    run = bench.start()
    run.send(framed(text.encode() for text in texts))
    bench.check()
    assert run.stop() == 0, run.said()
    expected = by_letter(bench.expected)

    rows = asked("dump", bench.checkpoint, STATE)
    assert {row["key"]: totals(row["value"]) for row in rows} == expected
    (batch,) = {row["batch"] for row in rows}
    assert batch >= 0
    at_url = f"file://{bench.checkpoint.absolute()}"
    page = asked("dump", at_url, STATE, "--limit", 2, "--after", "a")
    letters = sorted(expected)
    assert [row["key"] for row in page] == [letter for letter in letters if letter > "a"][:2]
    (listed,) = asked("ls", bench.checkpoint)
    assert (listed["state"], listed["keys"], listed["batch"]) == (STATE, len(expected), batch)
    assert listed["bytes"] == sum(row["bytes"] for row in rows)

    shown = wallaroo("state", "get", bench.checkpoint, STATE, "x")
    assert totals(json.loads(shown.stdout)) == expected["x"]
    assert shown.stderr.splitlines()[-1] == f"as of micro-batch {batch}"
    missing = wallaroo("state", "get", bench.checkpoint, STATE, "q", "--raw")
    assert missing.returncode == 1
    assert (
        f'R720 state "{STATE}", as of micro-batch {batch}, has no key q; it has what `wallaroo state dump '
        f"{bench.checkpoint} {shlex.quote(STATE)} --limit 20` shows"
    ) in missing.stderr
