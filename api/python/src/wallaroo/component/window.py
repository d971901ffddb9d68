"""Windows: which messages of a key an aggregation takes together."""

import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.diagnostic.location import called_from

MAX_MS = 31_536_000_000
NS_PER_MS = 1_000_000
MAX_COUNT = 1_000_000_000
MAX_OPEN = 100_000  # windows of a key at once
FLUSH_MS = 5000
B = TypeVar("B", bound="TimedWindowsBuilder")
LATE = {"drop": "drop", "fire-per-message": "fire_per_message", "place-in-oldest-window": "place_in_oldest_window"}


def nanoseconds(count: int) -> int:
    """Return a span of time in nanoseconds, as windows take it.

    Args:
        count: How many nanoseconds.

    Raises:
        WallarooParameterError: It is no int (T207).

    Example:
        >>> range_windows(nanoseconds(3_000_000))
        range_windows(3000000)

    Source: Wallaroo 0.6.
    """
    return _span("nanoseconds", count, 1)


def microseconds(count: int) -> int:
    """Return so many microseconds in nanoseconds.

    Args:
        count: How many microseconds.

    Raises:
        WallarooParameterError: It is no int (T207).

    Example:
        >>> microseconds(5), microseconds(1_000_000) == seconds(1)
        (5000, True)

    Source: Wallaroo 0.6.
    """
    return _span("microseconds", count, 1000)


def milliseconds(count: int) -> int:
    """Return so many milliseconds in nanoseconds.

    Args:
        count: How many milliseconds.

    Raises:
        WallarooParameterError: It is no int (T207).

    Example:
        >>> range_windows(milliseconds(250))
        range_windows(250000000)

    Source: Wallaroo 0.6.
    """
    return _span("milliseconds", count, 1_000_000)


def seconds(count: int) -> int:
    """Return so many seconds in nanoseconds.

    Args:
        count: How many seconds.

    Raises:
        WallarooParameterError: It is no int (T207).

    Example:
        >>> seconds(2)
        2000000000

    Source: Wallaroo 0.6.
    """
    return _span("seconds", count, 1_000_000_000)


def minutes(count: int) -> int:
    """Return so many minutes in nanoseconds.

    Args:
        count: How many minutes.

    Raises:
        WallarooParameterError: It is no int (T207).

    Example:
        >>> minutes(1), minutes(1) == seconds(60)
        (60000000000, True)

    Source: Wallaroo 0.6.
    """
    return _span("minutes", count, 60_000_000_000)


def hours(count: int) -> int:
    """Return so many hours in nanoseconds.

    Args:
        count: How many hours.

    Raises:
        WallarooParameterError: It is no int (T207).

    Example:
        >>> range_windows(hours(1)).with_slide(minutes(30))
        range_windows(3600000000000).with_slide(1800000000000)

    Source: Wallaroo 0.6.
    """
    return _span("hours", count, 3_600_000_000_000)


def range_windows(range_ns: int) -> "RangeWindowsBuilder":
    """Begin windows over a span of time, per key.

    Without `with_slide` one window begins where the one before ends. A message's time is that of its arrival, or
    its own where all sources give one (Kafka, connectors, Spark with `timestamp`).

    Args:
        range_ns: Length of a window in nanoseconds. Times of messages are in milliseconds, so it is rounded up to whole
            milliseconds, with a warning.

    Raises:
        WallarooParameterError: It is not a number of more than 0 nanoseconds and at most 365 days.

    Example:
        >>> windows = range_windows(seconds(9)).with_slide(seconds(3)).with_delay(seconds(1))
        >>> windows.with_late_data_policy("fire-per-message")
        range_windows(9000000000).with_slide(3000000000).with_delay(1000000000).with_late_data_policy('fire-per-message')

    Source: Wallaroo 0.6.
    """
    return RangeWindowsBuilder({"range": _in_ms("range_windows", "range_ns", range_ns, 1)})


def session_windows(gap_ns: int) -> "SessionWindowsBuilder":
    """Begin sessions, per key: windows of messages without a longer gap between them.

    A session ends `gap_ns` after its last message; a message whose time is exactly that begins the next one. Where a
    message falls between two sessions that are open, with less than the gap to both, `combine` joins them. A message's
    time is as for `range_windows`.

    Args:
        gap_ns: How long a session waits for its next message, in nanoseconds, rounded up to whole milliseconds with a
            warning.

    Raises:
        WallarooParameterError: It is not a number of more than 0 nanoseconds and at most 365 days.

    Example:
        >>> session_windows(seconds(30)).with_delay(seconds(5)).with_late_data_policy("fire-per-message")
        session_windows(30000000000).with_delay(5000000000).with_late_data_policy('fire-per-message')
    """
    return SessionWindowsBuilder({"gap": _in_ms("session_windows", "gap_ns", gap_ns, 1)})


def count_windows(count: int) -> "CountWindowsBuilder":
    """Begin windows of a number of messages, per key.

    A window that is not full is emitted when no message of its key came for 5 seconds.

    Args:
        count: How many messages make a window.

    Raises:
        WallarooParameterError: It is not an int of 1 to 1,000,000,000.

    Example:
        >>> import wallaroo
        >>> class Total(wallaroo.Aggregation):
        ...     def initial_accumulator(self):
        ...         return [0]
        ...
        ...     def update(self, input, accumulator):
        ...         accumulator[0] += input
        ...
        ...     def combine(self, accumulator1, accumulator2):
        ...         return [accumulator1[0] + accumulator2[0]]
        ...
        ...     def output(self, key, accumulator):
        ...         return key, accumulator[0]
        >>> totals = count_windows(100).over(Total)  # to be handed to `to`, after `key_by`
        >>> totals.fields
        {'kind': 'count', 'count': 100, 'flush_ms': 5000}

    Source: Wallaroo 0.6.
    """
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_COUNT:
        raise _wrong(count, "count_windows", "count", f"an int of 1 to {MAX_COUNT}")
    return CountWindowsBuilder(count)


class Windows:
    """Windows with their aggregation; made by `over`, taken by `Pipeline.to`.

    Attributes:
        fields: What the document says of them, but for `time`.
    """

    def __init__(self, fields: Mapping[str, Any], aggregation: Any) -> None:
        self.fields, self.aggregation = fields, aggregation

    def document(self, *, has_event_time: bool) -> dict[str, Any]:
        """Return the document's entry of the windows."""
        if self.fields["kind"] == "count":
            return dict(self.fields)
        return {**self.fields, "time": "event" if has_event_time else "ingest"}


class RangeWindows(Windows):
    """Windows over a span of time."""


class SessionWindows(Windows):
    """Windows of messages without a longer gap between them."""


class CountWindows(Windows):
    """Windows of a number of messages."""


class TimedWindowsBuilder:
    """Describes windows that a time ends; each method returns a new builder."""

    _function, _size = "", ""  # that begins it, and its parameter

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._given = fields

    def __repr__(self) -> str:
        text = f"{self._function}({self._given[self._size] * NS_PER_MS})"
        for name in ("slide", "delay"):
            if name in self._given:
                text += f".with_{name}({self._given[name] * NS_PER_MS})"
        return text + (f".with_late_data_policy({self._given['late']!r})" if "late" in self._given else "")

    def with_delay(self: B, delay: int) -> B:
        """Let windows wait `delay` nanoseconds for late messages; with a slide it is rounded up to a multiple of that.

        Raises:
            WallarooParameterError: It is no such span, or is set already.
        """
        return self._with("with_delay", "delay", _in_ms("with_delay", "delay", delay, 0))

    def with_late_data_policy(self: B, policy: str) -> B:
        """Set the policy for messages that are older than all open windows.

        Args:
            policy: "drop", the default: they go nowhere, and the run counts them; "fire-per-message": each is emitted
                at once as a window of its own, whose `bounds` begin and end at its time; "place-in-oldest-window":
                they count in the oldest open window.

        Raises:
            WallarooParameterError: It is none of these, or is set already.
        """
        if policy not in LATE:
            expected = " or ".join(f'"{name}"' for name in LATE)
            raise _wrong(policy, "with_late_data_policy", "policy", expected, self._function)
        return self._with("with_late_data_policy", "late", policy)

    def _fields(self, kind: str, step_ms: int, **sizes: int) -> dict[str, Any]:
        """Return the document's entry, unless too many windows of a key would be open at once."""
        delay_ms = self._given.get("delay", 0)
        count = -(-(self._given[self._size] + delay_ms) // step_ms)
        if count > MAX_OPEN:
            at = called_from().shown()._asdict()
            raise WallarooParameterError(Diagnostic.of("T271", **at, count=count, limit=MAX_OPEN))
        return {"kind": kind, **sizes, "delay_ms": delay_ms, "late": LATE[self._given.get("late", "drop")]}

    def _with(self: B, method: str, name: str, value: Any) -> B:
        if name in self._given:
            raise _wrong(value, method, name, f"one call of {method}", self._function)
        return type(self)({**self._given, name: value})


class RangeWindowsBuilder(TimedWindowsBuilder):
    """Describes windows over a span of time; each method returns a new builder."""

    _function, _size = "range_windows", "range"

    def with_slide(self, slide: int) -> "RangeWindowsBuilder":
        """Let a window begin every `slide` nanoseconds, at most the length of a window.

        Raises:
            WallarooParameterError: It is no such span, or is set already.
        """
        slide_ms = _in_ms("with_slide", "slide", slide, 1)
        if slide_ms > self._given["range"]:
            raise _wrong(slide, "with_slide", "slide", f"at most the range, {self._given['range'] * NS_PER_MS}")
        return self._with("with_slide", "slide", slide_ms)

    def over(self, aggregation: Any) -> RangeWindows:
        """Return the windows with their aggregation, an `Aggregation` class or object.

        Raises:
            WallarooParameterError: More than 100,000 windows would be open at once for each key: range and delay,
                divided by the slide.
        """
        range_ms = self._given["range"]
        slide_ms = self._given.get("slide", range_ms)
        return RangeWindows(self._fields("range", slide_ms, range_ms=range_ms, slide_ms=slide_ms), aggregation)


class SessionWindowsBuilder(TimedWindowsBuilder):
    """Describes sessions; each method returns a new builder."""

    _function, _size = "session_windows", "gap"

    def over(self, aggregation: Any) -> SessionWindows:
        """Return the sessions with their aggregation, an `Aggregation` class or object.

        Raises:
            WallarooParameterError: More than 100,000 sessions could be open at once for each key: gap and delay,
                divided by the gap.
        """
        gap_ms = self._given["gap"]
        return SessionWindows(self._fields("session", gap_ms, gap_ms=gap_ms), aggregation)


class CountWindowsBuilder:
    """Describes windows of a number of messages."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __repr__(self) -> str:
        return f"count_windows({self._count})"

    def over(self, aggregation: Any) -> CountWindows:
        """Return the windows with their aggregation, an `Aggregation` class or object."""
        return CountWindows({"kind": "count", "count": self._count, "flush_ms": FLUSH_MS}, aggregation)


def _span(unit: str, count: int, factor: int) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise WallarooParameterError.of(
            called_from(), method=unit, parameter="count", actual=shown(count), expected="an int",
            fix=f"write e.g. wallaroo.{unit}(5); for a part of a unit take a smaller one",
        )  # fmt: skip
    return count * factor


def _in_ms(method: str, parameter: str, value: Any, least: int) -> int:
    """Return nanoseconds as milliseconds, rounded up, and say so."""
    is_int = isinstance(value, int) and not isinstance(value, bool)
    rounded = -(-value // NS_PER_MS) if is_int else 0
    if not is_int or value < 0 or not least <= rounded <= MAX_MS:
        raise _wrong(value, method, parameter, f"nanoseconds, {least} ms to 365 days")
    if value % NS_PER_MS:
        text = f"{method}({value}): times are in milliseconds here; {value} ns are taken as {rounded} ms"
        warnings.warn(text, UserWarning, stacklevel=3)
    return rounded


FIXES = {
    "range_windows": "range_windows(wallaroo.seconds(9)).with_slide(wallaroo.seconds(3)).over(YourAggregation)",
    "session_windows": "session_windows(wallaroo.seconds(30)).with_delay(wallaroo.seconds(5)).over(YourAggregation)",
    "count_windows": "count_windows(100).over(YourAggregation)",
}


def _wrong(value: object, method: str, parameter: str, expected: str, function: str = "") -> WallarooParameterError:
    return WallarooParameterError.of(
        called_from(), method=method, parameter=parameter, actual=shown(value), expected=expected,
        fix=f"write e.g. {FIXES.get(function or method, FIXES['range_windows'])}",
    )  # fmt: skip
