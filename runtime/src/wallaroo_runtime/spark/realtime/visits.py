"""Reports the counts of visits (calls of user code for every key of a state) to the gateway, in real-time mode."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from wallaroo_runtime.service.client import Away
from wallaroo_runtime.spark.publish import TellVisits
from wallaroo_runtime.worker.step_count import VisitCounts, count_run


class VisitReports:
    """Reports the number of keys of each visit to the gateway. Keeps the counts while the gateway is away.

    Args:
        tell: Sends counts to the gateway, see `tell_visits` of `QueryOptions`.

    Attributes:
        last: Id of the last visit that is counted; 0 if there is none.
        counts: Counts of the run: visits that have ended, and the keys that they visited.
    """

    def __init__(self, tell: TellVisits) -> None:
        self._tell, self._untold, self._done = tell, VisitCounts(), 0
        self.last, self.counts = 0, count_run({})

    def take(self, report: Mapping[str, Any]) -> None:
        """Take the counts of new visits from a report of the operators, the result of `RealTime.numbers` in Java."""
        visits = {int(number): Counter(of_visit) for number, of_visit in report["visits"].items()}
        new = {number: of_visit for number, of_visit in visits.items() if number > self.last}
        self._untold |= new
        self.counts.update(count_run(new))
        self.last, self._done = max(new, default=self.last), report["barrier"]

    def tell(self) -> bool:
        """Send the counts that the gateway does not have yet. Return whether it has all of them now."""
        if self._untold:
            try:
                self._tell(self._untold, self._done)
            except Away:  # the supervision ends the run if this lasts too long
                return False
            self._untold = {}
        return True
