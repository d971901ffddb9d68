"""States of an application that runs in real-time mode: what it shows is what a prefix of all messages gives."""

import json
import random
from collections import Counter
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

import pytest

from support.realtime import APPS, REALTIME, SHORT, WORDS, Sender, wait_for_all
from support.run import WAIT_S, Receiver, Run, wallaroo
from support.state import STATE, by_letter, totals
from wallaroo_runtime.monitor.endpoint import driver_of, monitor_of

pytestmark = [pytest.mark.jvm, pytest.mark.long]
LETTERS = sorted({word[0] for word in WORDS})
LOOKS = 6


def asked(run: Run, path: str = "", options: str = "limit=1000") -> dict[str, Any]:
    """Ask the monitor of a run for states."""
    driver = driver_of(Path(run.checkpoint))
    assert driver is not None
    parts = urlsplit(monitor_of(Path(run.checkpoint)))
    url = f"http://{parts.netloc}/api/v1/state/{quote(STATE)}{path}?{parts.query}&{options}"
    with urlopen(url, timeout=WAIT_S) as reply:
        return dict(json.loads(reply.read()))


def by_key(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    return {row["key"]: totals(row["value"]) for row in rows}


def counted(states: dict[str, dict[str, int]]) -> int:
    return sum(sum(words.values()) for words in states.values())


@pytest.mark.parametrize(("language", "seed"), [("go", 21), ("python", 22)])
def test_states_are_those_of_a_prefix_of_what_came(language: str, seed: int, tmp_path: Path) -> None:
    draw, shown = random.Random(seed), list[tuple[int, dict[str, dict[str, int]]]]()
    with Receiver() as receiver, Run(APPS[language], receiver, tmp_path / "c", *REALTIME, "--conf", SHORT) as run:
        sender = Sender(run.ready(), rate=300, seed=seed)
        run.wait_while_alive(lambda: bool(asked(run)["keys"]), lambda: "the first commit")
        for _ in range(LOOKS):
            whole = asked(run)
            shown.append((whole["batch"], by_key(whole["keys"])))
        listed = wallaroo("state", "dump", tmp_path / "c", STATE, "--json")
        assert listed.returncode == 0, listed.stderr
        dumped = [json.loads(line) for line in listed.stdout.splitlines()]
        shown.append((dumped[0]["batch"], by_key(dumped)))
        sent = sender.end()
        wait_for_all(receiver, sent, run.said)
        run.wait_while_alive(lambda: counted(by_key(asked(run)["keys"])) == sent.total(), lambda: "the last commit")

        expected, last = by_letter(sent), asked(run)
        assert by_key(last["keys"]) == expected
        for letter in draw.sample(LETTERS, 3):
            found = asked(run, f"/{letter}")
            assert (totals(found["value"]), found["batch"] >= last["batch"]) == (expected[letter], True)
            assert by_key(asked(run, "", f"prefix={letter}")["keys"]) == {letter: expected[letter]}
        limit, after = draw.randint(1, 5), draw.choice(LETTERS)
        page = asked(run, "", f"limit={limit}&after={after}")
        wanted = [letter for letter in LETTERS if letter > after]
        assert [row["key"] for row in page["keys"]] == wanted[:limit]
        assert page["next"] == (wanted[limit - 1] if len(wanted) > limit else None)
        assert run.stop() == 0, run.said()

    prefixes = [Counter[str](), *accumulate((Counter([word]) for word in sender.order), lambda sum_, one: sum_ + one)]
    for _, states in shown:
        assert states == by_letter(prefixes[counted(states)])
    assert all(one[0] <= two[0] and counted(one[1]) <= counted(two[1]) for one, two in pairwise(shown))
    assert len({counted(states) for _, states in shown}) > 2, "they follow the messages"


def test_no_states_without_room_for_a_task(tmp_path: Path) -> None:
    options = (*REALTIME, "--master", "local[1]")
    with Receiver() as receiver, Run(APPS["go"], receiver, tmp_path / "c", *options) as run:
        run.ready()
        with pytest.raises(HTTPError) as refused:
            asked(run)
        found = json.loads(refused.value.read())
        assert (refused.value.code, found["code"]) == (503, "R771")
        assert "--master local[2]" in found["fix"]
        assert run.stop() == 0, run.said()
