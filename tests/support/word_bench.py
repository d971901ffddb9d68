"""The word count, run."""

import string
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from support.case import Case
from support.run import Receiver, Run
from support.strangers import MARK

PUNCTUATION = " " + string.punctuation


CASE = Case("word_count")


class Bench:
    """A run with what has been sent so far."""

    def __init__(self, language: str, checkpoint: Path) -> None:
        self.language, self.checkpoint = language, checkpoint
        self.other = "go" if language == "python" else "python"
        self.expected: Counter[str] = Counter()
        self.empty = self.messages = 0
        self.receiver = Receiver()
        self.run: Run | None = None

    def start(self, *options: object, app: object = None) -> Run:
        if self.run is not None:
            self.run.close()
        mark = {MARK: str(self.checkpoint)}
        self.run = Run(app or CASE.app(self.language), self.receiver, self.checkpoint, *options, **mark)
        return self.run.ready()

    def expect(self, texts: Iterable[str]) -> None:
        """Count what the tutorial's program would count."""
        for text in texts:
            self.messages += 1
            for line in text.split("\n"):
                words = [word.strip(PUNCTUATION) for word in line.lower().strip(PUNCTUATION).split(" ")]
                self.expected.update(word for word in words if word)
                self.empty += words.count("")

    def check(self) -> None:
        """Wait until everything is out; each word's counts are 1, 2, 3, ... in the order of arrival."""
        assert self.run is not None
        lines = self.receiver.wait_for_lines(self.expected.total(), self.run)
        seen: Counter[str] = Counter()
        for line in lines:
            word, _, count = line.rpartition(" => ")
            seen[word] += 1
            assert int(count) == seen[word], f"{word}: {count} came where {seen[word]} belongs"
        assert seen == self.expected
        self.run.wait_for("dead_letters", self.empty)
        assert self.run.last("dead_letters") == self.empty

    def close(self) -> None:
        if self.run is not None:
            self.run.close()
        self.receiver.close()
