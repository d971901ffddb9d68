"""Runs applications in the memory of a Go process, with the SDK's test kit, which plans and orders by itself."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from model.application import GO, Application, Chunk
from model.check import check
from model.compute import item_of
from model.draw import FIRST_MS
from model.emitted import binary
from model.outcome import Published
from wallaroo_runtime.topology.model import TIMER_MS

START_MS = 1_767_225_600_000  # of both test kits


def timed(application: Application) -> Application:
    """Give an application the clock of the test kit: time stands still, or moves with a tick in each interval.

    Ticks are many then; those that were drawn are not among them, but for the last one.
    """
    spans = [step["ms"] for step in application.steps if step["op"] in ("range", "session")]
    spans += [step["ttl"] for step in application.steps if step["op"] == "timed" and step["ttl"]]
    spans += [TIMER_MS for step in application.steps if step["op"] == "timed" and step["timers"]]
    if not spans:
        chunks = tuple(each._replace(time_ms=START_MS) for each in application.chunks if each.source is not None)
        return replace(application, chunks=chunks)
    interval = max(100, min(1000, min(spans) // 2))
    return replace(application, chunks=tuple(_ticked(application.chunks, interval)))


def _ticked(chunks: tuple[Chunk, ...], interval: int) -> Iterator[Chunk]:
    now = START_MS
    for chunk in (*(each for each in chunks[:-1] if each.source is not None), chunks[-1]):
        time_ms = chunk.time_ms - FIRST_MS + START_MS
        while now < time_ms:
            now = min(now // interval * interval + interval, time_ms)
            yield Chunk(None, (), now)
        if chunk.source is not None:
            yield chunk._replace(time_ms=now)


def moves(chunks: tuple[Chunk, ...]) -> Iterator[dict[str, Any]]:
    """Yield what a test does: send messages, and let time pass until those that follow."""
    now = START_MS
    for at, chunk in enumerate(chunks):
        is_last = at == len(chunks) - 1
        if chunk.time_ms > now and (chunk.source is not None or is_last):
            yield {"advance_ms": chunk.time_ms - now}
            now = chunk.time_ms
        if chunk.source is not None:
            yield {"source": chunk.source, "messages": [payload.decode() for payload in chunk.payloads]}


class Memory:
    """A process that runs applications."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()

    def run(self, application: Application, _: Path) -> Published:
        """Run an application, first with nothing drawn, then with what its settings' seed draws; both must be right."""
        assert application.main == GO and not application.other
        check(application, self._run(application, None))
        return self._run(application, application.settings.seed)

    def _run(self, application: Application, seed: int | None) -> Published:
        if self._process is None:
            command = [str(binary(application.program("main"))), "memory"]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin and self._process.stdout
        asked = {"arguments": application.arguments("main"), "moves": list(moves(application.chunks)), "seed": seed}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        found = json.loads(self._process.stdout.readline())
        assert not found["Error"], found["Error"]
        return _published(application, found)


def _published(application: Application, found: dict[str, Any]) -> Published:
    lines = {number: [item_of(line) for line in given] for number, given in enumerate(found["Lines"])}
    letters = Counter((letter["Step"], letter["Message"]) for letter in found["Letters"])
    errors = [str(letter) for letter in found["Letters"]]
    return Published(lines, letters, errors, sink_names(application), counts_ticks=False)


def sink_names(application: Application) -> dict[str, str]:
    """Return the names of the sinks: those of their pipelines, with a number from the second sink of a pipeline on."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for pipeline, number in _sinks(application):
        counts[pipeline] += 1
        names[f"sink{number}"] = pipeline if counts[pipeline] == 1 else f"{pipeline}-{counts[pipeline]}"
    return names


def _sinks(application: Application) -> Iterator[tuple[str, int]]:
    """Yield the pipeline and the number of each sink, in the order in which programs declare the sinks."""
    if application.api == "graph":
        yield from (("drawn", number) for number in range(len(application.sinks)))
        return
    for number in range(len(application.sources)):
        yield from ((f"in{number}", sink) for sink in _branch(application, number))


def _branch(application: Application, end: int) -> list[int]:
    """Return the sinks after a source or an output, and the sinks of the branches that begin there: first in Go."""
    branches: list[int] = []
    for at, step in enumerate(application.steps, len(application.sources)):
        if list(step["inputs"]) == [end] and step["op"] == "output":
            branches += _branch(application, at)
        elif list(step["inputs"]) == [end]:
            end = at
    sinks = [number for number, sink in enumerate(application.sinks) if list(sink["inputs"]) == [end]]
    return branches + sinks if application.main == GO else sinks + branches
