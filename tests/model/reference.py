"""What an application must give: its steps, run one source message after the other, by one process without faults."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from model import compute, timed
from model.application import Application, Chunk
from model.compute import MARK, Item

FLUSH_MS = 5000  # of count windows that say nothing else
Place = tuple[str, int]  # the part that failed, the sequence of the source message


@dataclass
class Outcome:
    """What came of an application's messages.

    Attributes:
        lines: For each sink its items, as far as their order is promised.
        letters: The dead letters.
    """

    lines: list[list[Item]] = field(default_factory=list)
    letters: Counter[Place] = field(default_factory=Counter)


class Reference:
    """Runs an application's messages in the order of their arrival, each to its end.

    Args:
        application: What to run.
        counts_ticks: Whether ticks have sequences of their own, as in a journal.
    """

    def __init__(self, application: Application, *, counts_ticks: bool = True) -> None:
        self.application, self._counts_ticks = application, counts_ticks
        self.outcome = Outcome([[] for _ in application.sinks])
        self._states: dict[tuple[str, str], dict[str, Any]] = defaultdict(compute.new_state)
        self._windows: dict[tuple[int, str], dict[str, Any]] = {}
        self._timed: dict[tuple[int, str], timed.Key] = {}
        self._sequence = self._now = 0
        self._letters: Counter[Place] = Counter()
        steps, first = application.steps, len(application.sources)
        # By the stream of a step and the name of its output.
        self._outputs = {(s["inputs"][0], s["name"]): first + at for at, s in enumerate(steps) if s["op"] == "output"}

    def run(self, chunks: Iterable[Chunk]) -> Outcome:
        """Run frames of the journal; a tick is one without messages."""
        for chunk in chunks:
            self._now = chunk.time_ms
            if chunk.source is None:
                self._tick()
                self._sequence += self._counts_ticks
            for payload in chunk.payloads:
                self._source(chunk.source or 0, payload)
                self._sequence += 1
        self.outcome.letters = self._letters
        return self.outcome

    def _source(self, number: int, payload: bytes) -> None:
        try:
            item = compute.decode(self.application.sources[number], payload)
        except ValueError:
            self._letters[f"in{number}", self._sequence] += 1
            return
        if item is not None:
            self._follow(number, item, "")

    def _follow(self, stream: int, item: Item, key: str) -> None:
        """Hand what a stream gave to all that take it, in the order of the document, depth first."""
        first = len(self.application.sources)
        for number, step in enumerate(self.application.steps):
            if stream in step["inputs"] and step["op"] != "output":
                self._step(first + number, number, step, item, key)
        for number, sink in enumerate(self.application.sinks):
            if stream in sink["inputs"]:
                try:
                    compute.line(sink, item)
                    self.outcome.lines[number].append(item)
                except ValueError:
                    self._letters[f"sink{number}", self._sequence] += 1

    def _step(self, stream: int, number: int, step: dict[str, Any], item: Item, key: str) -> None:
        op = step["op"]
        try:
            if op in ("count", "range", "session"):
                made = self._window(number, step, item, key)
            elif op == "timed":
                self._wake(number, key)
                self._timed[number, key], item = timed.arrive(step, self._timed.get((number, key)), item, self._now)
                made = [item]
            elif op in ("total", "fan", "tally"):
                key = compute.key_of(item) if "state" in step else key
                made = self._state(number, step, item, key)
            else:
                made = compute.compute(step, item)
                key = compute.key_of(item) if op == "key_by" else "" if op == "collect" else key
        except ValueError:
            self._letters[f"{op}{number}", self._sequence] += 1
            return
        for each in made:
            self._give(stream, step, each, key)

    def _give(self, stream: int, step: dict[str, Any], item: Item, key: str) -> None:
        """Hand on what a step gave: to what takes its stream, or one of its outputs; else it is dropped."""
        output = compute.output_of(step, item)
        taken = stream if output is None else self._outputs.get((stream, output["name"]))
        if taken is not None:
            self._follow(taken, item, key)

    def _state(self, number: int, step: dict[str, Any], item: Item, key: str) -> list[Item]:
        place = (step.get("state", f"step {number}"), key)
        state = dict(self._states[place])
        made = compute.update(step, item, state)
        self._states[place] = state
        return made

    def _window(self, number: int, step: dict[str, Any], item: Item, key: str) -> list[Item]:
        place = (number, key)
        known = self._windows.get(place)
        made = []
        if known is not None and step["op"] != "count":
            made, known = self._due(step, known)
        if known is None:
            known = {"content": compute.new_window(), "start": self._now, "last": self._now}
        content = dict(known["content"])
        try:
            compute.gather(step, item, content)
        except ValueError:
            # What the message had made due comes with the next one, and the key is as before it.
            raise
        known = {"content": content, "start": known["start"], "last": self._now}
        self._windows[place] = known
        if step["op"] == "count" and content["count"] == step["size"]:
            del self._windows[place]
            made = [compute.result(content)]
        return [each for each in made if each is not None]

    def _wake(self, number: int, key: str) -> None:
        """Do what is due of a key when a message of it comes."""
        for item in self._woken(number, key):
            self._give(len(self.application.sources) + number, self.application.steps[number], item, key)

    def _woken(self, number: int, key: str) -> list[Item]:
        known = self._timed.pop((number, key), None)
        if known is None:
            return []
        left, given, failed = timed.wake(self.application.steps[number], known, self._now)
        if failed:
            self._letters[f"timed{number}", self._sequence] += failed
        if left is not None:
            self._timed[number, key] = left
        return given

    def _due(self, step: dict[str, Any], known: dict[str, Any]) -> tuple[list[Item | None], dict[str, Any] | None]:
        """Return what a window of time emits by now, and what is left of the key."""
        if step["op"] == "session":
            is_over = self._now >= known["last"] + step["ms"]
            return ([compute.result(known["content"])], None) if is_over else ([], known)
        made: list[Item | None] = []
        passed = (self._now - known["start"]) // step["ms"]
        if passed > 0:
            made.append(compute.result(known["content"]))
            known = {**known, "content": compute.new_window(), "start": known["start"] + passed * step["ms"]}
        is_silent = self._now >= known["last"] + 2 * step["ms"]
        return made, None if is_silent else known

    def _flushed(self, known: dict[str, Any]) -> tuple[list[Item | None], dict[str, Any] | None]:
        """Return what a tick makes of a count window: it ends when no message came since an earlier tick."""
        first = known.get("first_tick", self._now)
        if self._now - first >= FLUSH_MS:
            return [compute.result(known["content"])], None
        return [], {**known, "first_tick": first}

    def _tick(self) -> None:
        """Let time pass for windows and steps with times; what one gives comes to later ones after that, by level."""
        given: list[tuple[int, Item, str]] = []
        for number, key in sorted([*self._windows, *self._timed], key=lambda place: (-place[0], place[1])):
            step = self.application.steps[number]
            if step["op"] == "timed":
                given += [(number, item, key) for item in self._woken(number, key)]
                continue
            known = self._windows[number, key]
            made, left = self._due(step, known) if step["op"] != "count" else self._flushed(known)
            if left is None:
                del self._windows[number, key]
            else:
                self._windows[number, key] = left
            given += [(number, item, key) for item in made if item is not None]
        for number, item, key in given:
            stream, step = len(self.application.sources) + number, self.application.steps[number]
            self._give(stream, step, item, key)


def arranged(application: Application, items: Iterable[Item]) -> dict[tuple[int, int], list[Item]]:
    """Return a sink's items as far as their order is promised: by end, and there all, by key, or as a bag."""
    found: dict[tuple[int, int], list[Item]] = defaultdict(list)
    for item in items:
        end, key = divmod(item.key, MARK)
        order = application.orders[end]
        found[end, key if order == "key" else -1].append(item)
    return {place: sorted(each) if application.orders[place[0]] == "bag" else each for place, each in found.items()}
