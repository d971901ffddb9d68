"""Gives the gateway the counts of visits, in real-time mode."""

import json
from collections import Counter
from collections.abc import Callable, Mapping

from wallaroo_runtime.service.client import Away

# Gets keys and failed ones by the visit's id, and the offset before which visits are done, though not committed.
TellDone = Callable[[Mapping[int, tuple[int, int]], int], None]


class VisitCounts:
    """The counts of visits: each visit once, and reported when the gateway can take them.

    Args:
        read: Returns what visits came to after the one of an id, see `RealTime.visits`.
        tell: Takes it; raises `Away` soon when the gateway is away.

    Attributes:
        counts: How many have come to their end, and for how many keys they ran.
    """

    def __init__(self, read: Callable[[int], str], tell: TellDone) -> None:
        self._read, self._tell = read, tell
        self._counted = self._told = 0
        self.counts = Counter(visits=0, visited_keys=0)

    def tell(self, last: int) -> bool:
        """Report the counts that the gateway does not know yet; return whether it knows all now.

        Args:
            last: Id of the last visit whose output is all in the outbox; 0: there is none.
        """
        if last <= self._told:
            return True
        report = json.loads(self._read(self._told))
        counts = {int(number): (keys, failed) for number, (keys, failed) in report["visits"].items()}
        new = {number: keys for number, (keys, _) in counts.items() if number > self._counted}
        self.counts.update(visits=len(new), visited_keys=sum(new.values()))
        self._counted = max(counts)
        try:
            self._tell(counts, report["offset"])
        except Away:  # who looks after the run ends it when that lasts for too long
            return False
        self._told = self._counted
        return True
