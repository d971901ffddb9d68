"""Messages that a codec cannot write on their way to another worker are dead letters; all others go on."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from support.border.app import BAD
from support.run import MODES, TESTS, Receiver, Run, framed
from wallaroo import testing

FOLDER = TESTS / "support" / "border"
APPS = {"python": FOLDER / "app.py", "go": FOLDER}
# Steps whose result may be what no codec writes; at the others all goes well.
PLACES = ("source", "first", "middle", "last", "count", "total", "nowhere")
ARGS = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"]
Message = tuple[str, str, str]
MESSAGES = some.lists(some.tuples(some.sampled_from("abc"), some.sampled_from(PLACES), some.sampled_from(list(BAD))))


class Reference:
    """What the application does: a message is lost on its way from one worker to the other, after the step has run."""

    def __init__(self) -> None:
        self.counts, self.totals = Counter[str](), Counter[str]()

    def run(self, messages: list[Message]) -> tuple[list[str], Counter[str]]:
        """Return the lines that come out, and how many dead letters there are at each place."""
        lines, lost = [], Counter[str]()
        for key, place, _ in messages:
            lost[place] += place != "nowhere"
            if place in ("source", "first", "middle", "last"):
                continue
            self.counts[key] += 1
            if place == "count":
                continue
            self.totals[key] += 1
            if place != "total":
                lines.append(f"{key} {self.counts[key] * 1000 + self.totals[key]}")
        return lines, lost


def by_key(lines: list[str]) -> dict[str, list[str]]:
    """Return lines by key: those of one key have an order."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        found[line.split()[0]].append(line)
    return found


@pytest.fixture(scope="module", params=["python", "go"])
def app(request: pytest.FixtureRequest) -> Iterator[testing.Run]:
    with testing.run(str(APPS[request.param]), ARGS) as started:
        yield started


@pytest.mark.slow
def test_in_memory(app: testing.Run) -> None:
    reference = Reference()

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(MESSAGES)
    def holds(messages: list[Message]) -> None:
        app.clear()
        app.send([" ".join(message).encode() for message in messages])
        lines, lost = reference.run(messages)
        assert by_key([each.decode().rstrip("\n") for each in app.output()]) == by_key(lines)
        assert {letter.code for letter in app.dead_letters} <= {"C504"}
        # At the exit to a state step the letter is of that step, which Go knows by its path alone.
        steps = Counter("count" if "/" in letter.step else letter.step for letter in app.dead_letters)
        lost["count"] += lost.pop("last", 0)
        assert steps == +lost

    holds()


@pytest.mark.jvm
@pytest.mark.long
@pytest.mark.parametrize(("language", "mode"), [("python", "realtime"), ("go", "realtime"), ("python", "microbatch")])
def test_on_spark(language: str, mode: str, tmp_path: Path) -> None:
    random = Random(f"{language} {mode}")
    messages = [(random.choice("abc"), random.choice(PLACES), random.choice(list(BAD))) for _ in range(300)]
    lines, lost = Reference().run(messages)
    with Receiver() as receiver, Run(APPS[language], receiver, tmp_path / "c", *MODES[mode]) as run:
        run.ready()
        run.send(framed(" ".join(message).encode() for message in messages))
        receiver.wait_for_lines(len(lines), run)
        run.wait_for("dead_letters", lost.total())
        assert run.stop() == 0, run.said()
        assert by_key(receiver.lines()) == by_key(lines)
        assert run.last("dead_letters") == lost.total()
