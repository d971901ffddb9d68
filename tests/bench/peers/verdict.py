"""The comparison of what a contender has written with the reference."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bench.peers.workload import Record

EXACT = "exact"


class Verdict(NamedTuple):
    """How many results are not as in the reference.

    Attributes:
        missing: Those that never came.
        repeated: Those that came again.
        wrong: Those that the reference does not have, such as counts that are too high.
        disordered: Those that came after a later one of their key.
    """

    missing: int = 0
    repeated: int = 0
    wrong: int = 0
    disordered: int = 0

    def text(self, *, is_whole: bool = True) -> str:
        """Return it in words; results that nobody waited for are not missing."""
        counts = self._asdict()
        if not is_whole:
            del counts["missing"]
        faults = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
        return faults or (EXACT if is_whole else f"{EXACT} so far")


def compare(expected: Mapping[Record, int], found: Iterable[Record]) -> Verdict:
    """Compare results in the order of their partitions with the reference, which has the place of each in its key."""
    seen: set[Record] = set()
    latest: dict[str, int] = {}
    repeated = wrong = disordered = 0
    for result in found:
        place = expected.get(result)
        if place is None:
            wrong += 1
        elif result in seen:
            repeated += 1
        else:
            seen.add(result)
            disordered += place < latest.get(result.key, 0)
            latest[result.key] = max(place, latest.get(result.key, 0))
    return Verdict(len(expected) - len(seen), repeated, wrong, disordered)
