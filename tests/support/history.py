"""A checkpoint that drawn steps make, and what becomes of it."""

import random
from pathlib import Path

from support.small_checkpoint import Small

STEPS = ("receive", "plan", "publish", "commit", "deliver")


class History:
    """Makes a checkpoint by drawn steps, which may end between any two writes.

    Args:
        path: The directory.
        draw: Chooses.
        name: Begins each message.

    Attributes:
        sent: All messages that were taken.
        got: Those that the sink has got.
    """

    def __init__(self, path: Path, draw: random.Random, name: str = "m") -> None:
        self.path, self._draw, self._name = path, draw, name
        self.sent: list[bytes] = []
        self.got: list[bytes] = []

    def go_on(self, rounds: int, last: int = len(STEPS)) -> None:
        """Do whole rounds of steps, and of one more the first `last`."""
        small = Small(self.path, f"query-{self._name}")
        try:
            for number in range(rounds + 1):
                self._round(small, STEPS if number < rounds else STEPS[:last])
        finally:
            small.close()

    def _round(self, small: Small, steps: tuple[str, ...]) -> None:
        if small.is_planned:  # as Spark does at a start
            small.publish()
            small.commit()
        for step in steps:
            if step == "receive":
                count, size = self._draw.randint(1, 4), self._draw.randint(1, 60)
                new = [b"%s%d" % (self._name.encode(), len(self.sent) + i) + b"." * size for i in range(count)]
                small.receive(new)
                self.sent += new
            elif step == "plan":
                assert small.plan(self._draw.choice((1, 300, 1 << 20)))
            elif step == "publish":
                small.publish()
            elif step == "commit":
                small.commit()
            else:
                self.got += small.deliver(self._draw.randint(0, 3))


def resumed(path: Path) -> tuple[list[bytes], list[str]]:
    """Go on to the end; returns what the sink got, and what was repaired."""
    small = Small(path)
    try:
        return small.finish(), small.repairs
    finally:
        small.close()
