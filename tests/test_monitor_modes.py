"""The monitor's rows in real-time mode and in micro-batches: one drawn input, one reference, and processes killed."""

import json
import os
import random
import signal
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.realtime import processes_of_worker
from support.run import CASES, MODES, Receiver, Run, framed, wait_until
from support.state import by_letter
from support.strangers import MARK, check_sockets
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.monitor.endpoint import status_of

pytestmark = pytest.mark.jvm
APPS = {"go": CASES / "word_count", "python": CASES / "word_count" / "app.py"}
STAGES = ("read", "journal", "wait", "compute", "output", "deliver", "commit", "end_to_end")
MEASURED = {"microbatch": ("wait", "compute", "deliver", "end_to_end")}
MEASURED["realtime"] = ("journal", *MEASURED["microbatch"], "output")


class Words:
    """A run of the word count, and what was sent to it."""

    def __init__(self, mode: str, language: str, checkpoint: Path) -> None:
        self.checkpoint, self.measured = checkpoint, MEASURED[mode]
        self.draw, self.receiver = random.Random(f"{mode} {language}"), Receiver()
        self.words, self.empty, self.messages = Counter[str](), 0, 0
        self._start = lambda: Run(
            APPS[language], self.receiver, checkpoint, *MODES[mode][:2], **{MARK: str(checkpoint)}
        )
        self.run = self._start().ready()

    def send(self) -> None:
        """Send drawn messages, on drawn connections; each has a result, a dead letter, or both."""
        for _ in range(self.draw.randint(1, 3)):
            texts = [
                " ".join(self.draw.choices(string.ascii_lowercase, k=self.draw.randint(0, 3)))
                for _ in range(self.draw.randint(1, 200))
            ]
            self.run.send(framed(text.encode() for text in texts))
            self.messages += len(texts)
            self.words.update(word for text in texts for word in text.split())
            self.empty += texts.count("")

    def restart(self) -> None:
        """Kill the driver, and start again."""
        self.run.process.kill()
        self.run.close()
        self.run = self._start().ready()

    def expected(self) -> dict[str, Any]:
        """Return what was sent, as the monitor must show it."""
        words, empty, messages = self.words.total(), self.empty, self.messages
        return {
            "parts": {
                "0/sources/0": [messages, messages, 0],
                "0/steps/0": [messages, words + empty, 0],
                "0/steps/1": [words, words, empty],
                "0/sinks/0": [words, words, 0],
            },
            "edges": [messages, words + empty, words],
            "total": [messages, words, empty],
            "sinks": [[words, 0]],
            "keys": len(by_letter(self.words)),
            "journal lag": 0,
        }

    def shown(self) -> dict[str, Any]:
        """Return what the monitor shows of that."""
        found = status_of(self.checkpoint)
        counts = ("messages_in", "messages_out", "dead_letters")
        return {
            "parts": {part["path"]: [part[name] for name in counts] for part in found["parts"]},
            "edges": [edge["messages"] for edge in found["edges"]],
            "total": [found["total"][name] for name in counts],
            "sinks": [[sink["messages"], sink["pending_messages"]] for sink in found["sinks"]],
            "keys": sum(state["keys"] for state in found["states"]),
            "journal lag": sum(gateway["lag_bytes"] for gateway in found["gateways"]),
        }

    def check(self) -> None:
        """Wait until the monitor shows what was sent."""
        wanted = self.expected()
        self.run.wait_while_alive(lambda: self.shown() == wanted, lambda: f"{self.shown()} to be {wanted}")

    def latencies(self) -> dict[str, dict[str, int]]:
        """Return the latencies of the run, by stage."""
        found = status_of(self.checkpoint)["latency_ms"]
        return {stage: found[stage]["run"] for stage in STAGES}


@pytest.fixture(
    scope="module",
    params=[
        ("realtime", "python"),
        pytest.param(("realtime", "go"), marks=pytest.mark.long),
        pytest.param(("microbatch", "python"), marks=pytest.mark.long),
        pytest.param(("microbatch", "go"), marks=pytest.mark.long),
    ],
    ids="-".join,
)
def words(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Words]:
    mode, language = request.param
    made = Words(mode, language, tmp_path_factory.mktemp("modes") / "checkpoint")
    try:
        yield made
    finally:
        made.run.close()
        made.receiver.close()


def test_rows_are_sums_of_what_was_sent(words: Words) -> None:
    for _ in range(3):
        words.send()
        words.check()


def test_other_users_get_nothing_of_the_run(words: Words) -> None:
    check_sockets(str(words.checkpoint))


def test_each_message_has_a_latency_of_each_stage(words: Words) -> None:
    partly = {"output", "deliver"}  # of the messages that have output

    def counts() -> dict[str, int]:
        return {stage: found["count"] for stage, found in words.latencies().items() if stage not in partly}

    wanted = {stage: words.messages * (stage in words.measured) for stage in STAGES if stage not in partly}
    wait_until(lambda: counts() == wanted, lambda: f"{counts()} to be {wanted}")
    found = {stage: ms for stage, ms in words.latencies().items() if ms["count"]}
    assert found.keys() == set(words.measured)
    assert 0 < found["deliver"]["count"] <= words.messages
    for stage, ms in found.items():
        assert ms["p50"] <= ms["p90"] <= ms["p99"] <= ms["p99_9"] <= ms["p99_99"] <= ms["max"], stage
    assert 0 < found["end_to_end"]["max"] < 240_000
    assert found["end_to_end"]["max"] >= found["compute"]["p50"]
    sums = {stage: ms["mean"] * ms["count"] for stage, ms in found.items()}
    whole = sums.pop("end_to_end")
    assert abs(sum(sums.values()) - whole) <= 0.2 * whole + 20 * words.messages, sums  # on a busy machine


def test_dead_letters_are_those_of_the_list(words: Words, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dead-letters", "ls", str(words.checkpoint), "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == words.empty == words.shown()["parts"]["0/steps/1"][2]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_status_fits_a_terminal(words: Words, columns: int, capsys: pytest.CaptureFixture[str]) -> None:
    words.send()
    words.check()
    assert main(["status", str(words.checkpoint)]) == 0
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith((" ", "end to end"))]
    assert max(map(len, table)) <= columns
    means = [line for line in table if line.startswith("  mean: ")]
    assert {stage for stage in STAGES if f" {stage} " in "".join(means)} == {*words.measured} - {"end_to_end"}
    assert len(table) == 6 + len(means)
    assert f"{words.messages:,}" in table[-4]


def test_what_is_run_again_counts_once(words: Words) -> None:
    """A worker that ended gets its calls again; an engine whose egress ended begins again at Spark's last commit."""
    os.kill(processes_of_worker(words.run)[0], signal.SIGKILL)
    words.send()
    words.check()
    os.kill(json.loads((words.checkpoint / "egress.json").read_text())["pid"], signal.SIGKILL)
    words.send()
    words.check()
    wait_until(lambda: words.latencies()["wait"]["count"] == words.messages, lambda: f"{words.latencies()}")


@pytest.mark.long
def test_totals_go_on_after_the_driver_was_killed(words: Words) -> None:
    """Rows are of the run: what it has processed, again or for the first time; totals are of the checkpoint."""
    words.send()
    words.check()
    before = words.messages
    words.restart()
    words.send()
    wanted = words.expected()
    names = ("total", "sinks", "journal lag")
    words.run.wait_while_alive(
        lambda: all(words.shown()[name] == wanted[name] for name in names), lambda: f"{words.shown()} to be {wanted}"
    )
    wait_until(
        lambda: words.messages - before <= words.shown()["parts"]["0/sources/0"][0] <= words.messages,
        lambda: f"{words.shown()}",
    )
