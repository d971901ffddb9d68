"""A maker of a generator source: 1, 2, 3, ... up to the number that its target says; fails where it is asked to."""

import time

ENCODING = 17


class NumberMaker:
    """Gives texts of 100 bytes. The target is `last`, or `last,failing`: the message that cannot be made."""

    def __init__(self, target: str, path: str) -> None:
        self.last, self.failing = (*map(int, target.split(",")), 0)[:2]

    def make(
        self, previous: bytes | None, encoding: int, max_count: int, max_bytes: int
    ) -> tuple[list[bytes], int, bool, str]:
        """Return the next numbers."""
        assert encoding == (0 if previous is None else ENCODING), encoding
        number = 0 if previous is None else int(previous)
        values: list[bytes] = []
        while number < self.last and len(values) < max_count and sum(map(len, values)) < max_bytes:
            number += 1
            if number == self.failing:
                return values, ENCODING, False, "C501 numbers: no more"
            values.append(b"%0100d" % number)
        time.sleep(0.001)  # so that kills come in between
        return values, ENCODING, number == self.last, ""
