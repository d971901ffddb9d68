"""What must come of messages and visits of the application in `visited`, one after the other."""

from collections import defaultdict

from support.visited.app import VISITS

Event = tuple[str, str]  # a key and a value, or a visit and its metadata


class Reference:
    """The states of the keys, what was given for each, and what visits came to."""

    def __init__(self) -> None:
        self.first: dict[str, list[int]] = {}
        self.second: defaultdict[str, list[int]] = defaultdict(list)
        self.given: defaultdict[str, list[str]] = defaultdict(list)
        self.letters: list[tuple[str, int]] = []
        self.visited: list[tuple[int, int]] = []

    def take(self, event: Event, sequence: int = 0) -> None:
        """Take the next event."""
        if event[0] in VISITS:
            self._visit(*event, sequence)
        elif event[1] != "peek":
            self.first.setdefault(event[0], []).append(int(event[1]))
            self._pass(event[0], f"{event[0]} got {event[1]}")

    def _pass(self, key: str, text: str) -> None:
        self.second[key].append(1)
        self.given[key].append(f"{text} {len(self.second[key])}")

    def _visit(self, name: str, metadata: str, sequence: int) -> None:
        count, failed = len(self.first), 0
        if name == "both":  # comes to the second step before what the first one makes of it
            count += len(self.second)
            for key in sorted(self.second):
                self.second[key].append(1)
                self.given[key].append(f"{key} second {len(self.second[key])}")
        for key in sorted(self.first):
            values = self.first[key]
            shown = f"{key} {name} {values}"
            if name == "show":
                self._pass(key, shown)
                continue
            after = [*values, int(metadata)]
            if name == "boom" and sum(after) % 3 == 0:
                failed += 1
                self.letters.append((key, sequence))
                continue
            self.first[key] = after
            self._pass(key, shown)
            if name == "odd" and len(after) % 2:
                self._pass(key, shown)
                del self.first[key]
        self.visited.append((count, failed))
