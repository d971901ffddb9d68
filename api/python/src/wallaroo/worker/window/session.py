"""Session windows: they end when no message of the key comes for a time, the gap."""

from collections.abc import Mapping
from typing import Any

from wallaroo.worker.value.result import present
from wallaroo.worker.window.window import CountWindow, Given, RangeWindow, TimedWindow, Window, WindowState

Session = tuple[int, int]  # a session: the times of its first and its last message


class SessionWindow(TimedWindow):
    """The session windows of one step. As long as a key has a state, at least one session is open.

    `WindowState.latest` has the last time of the newest session. The session's entry in `panes` may be older.
    """

    def __init__(self, aggregation: Any, window: Mapping[str, Any]) -> None:
        self.gap: int = window["gap_ms"]
        super().__init__(aggregation, window, window["delay_ms"], self.gap + window["delay_ms"])

    def _begin(self, state: WindowState, time: int) -> None:
        state.first = state.latest = state.oldest = time

    def _sessions(self, state: WindowState) -> list[Session]:
        """Return the open sessions in order. First update the end of the newest session in `panes`."""
        sessions: list[Session] = sorted(state.panes)
        if sessions and sessions[-1][1] != state.latest:
            newest = sessions.pop()
            sessions.append((newest[0], state.latest))
            state.panes[sessions[-1]] = state.panes.pop(newest)
        return sessions

    def _end(self, state: WindowState) -> int:
        last: int = min(state.panes)[1] if len(state.panes) > 1 else state.latest
        return last + self.gap

    def _is_late(self, state: WindowState, time: int) -> bool:
        if time + self.patience > max(state.latest, state.oldest):
            return False
        return not self._of(self._sessions(state), time)

    def _of(self, sessions: list[Session], time: int) -> list[Session]:
        """Return the sessions that a time belongs to."""
        return [each for each in sessions if each[0] - self.gap < time < each[1] + self.gap]

    def _add(self, state: WindowState, message: Any, time: int) -> None:
        joined = self._of(self._sessions(state), time)
        accumulator = state.panes.pop(joined[0]) if joined else self.initial()
        for each in joined[1:]:
            accumulator = present(self.combine(accumulator, state.panes.pop(each)), "an accumulator")
        self.add(message, accumulator)
        session = min([time, *(each[0] for each in joined)]), max([time, *(each[1] for each in joined)])
        state.panes[session] = accumulator
        state.latest = max(state.latest, time)
        state.slow()
        if session[1] == state.latest:
            state.pane, state.low = accumulator, session[0]
            state.high = min(session[1] + self.gap, self._end(state) + self.delay)

    def _add_to_oldest(self, state: WindowState, message: Any) -> None:
        self.add(message, state.panes[self._sessions(state)[0]])

    def _advance(self, state: WindowState, until: int, time: int, emitted: Given) -> None:
        state.slow()
        for first, last in self._sessions(state):
            end = last + self.gap
            if end + self.delay > until:
                break
            state.oldest = until
            accumulator = state.panes.pop((first, last))
            self.result(state, accumulator, end - 1 if self.is_event else time, emitted, (first, end))


KINDS: dict[str, type[RangeWindow | SessionWindow | CountWindow]] = {
    "range": RangeWindow,
    "session": SessionWindow,
    "count": CountWindow,
}


def window_of(aggregation: Any, window: Mapping[str, Any], *, has_watermarks: bool = False) -> Window:
    """Return the windows of a step, of the kind that the topology names.

    Args:
        has_watermarks: Whether ticks have event times, which move windows as the times of messages do.
    """
    windows = KINDS[window["kind"]](aggregation, window)
    if has_watermarks and (windows.is_event or isinstance(windows, CountWindow)):
        windows.waits = False
    return windows
