"""Reports the counts of visits to the gateway, in real-time mode."""

import json
from collections import Counter
from collections.abc import Callable, Mapping

from wallaroo_runtime.service.client import Away

# Gets the counts (visited keys, failed keys) by id of the visit, and the offset before which visits are done.
TellDone = Callable[[Mapping[int, tuple[int, int]], int], None]


class VisitCounts:
    """Counts each visit once, and reports the counts when the gateway can receive them.

    Args:
        read: Returns the counts of all visits after the visit with a given id, see `RealTime.visits`.
        tell: Is called with these counts. It raises `Away` if the gateway does not answer in a short time.

    Attributes:
        counts: Number of visits that have ended, and of the keys that they visited.
    """

    def __init__(self, read: Callable[[int], str], tell: TellDone) -> None:
        self._read, self._tell = read, tell
        self._counted = self._told = 0
        self.counts = Counter(visits=0, visited_keys=0)

    def tell(self, last: int) -> bool:
        """Report the counts that the gateway does not have yet. Return whether it has all of them now.

        Args:
            last: Id of the last visit whose output is all in the outbox; 0 if there is none.
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
        except Away:  # the supervision ends the run if this lasts too long
            return False
        self._told = self._counted
        return True
