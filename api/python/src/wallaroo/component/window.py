"""Windows: they group the messages of a key for an aggregation."""

import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.diagnostic.location import called_from

MAX_MS = 31_536_000_000
NS_PER_MS = 1_000_000
MAX_COUNT = 1_000_000_000
FLUSH_MS = 5000
B = TypeVar("B", bound="TimedWindowsBuilder")
LATE = {"drop": "drop", "fire-per-message": "fire_per_message", "place-in-oldest-window": "place_in_oldest_window"}


def nanoseconds(count: int) -> int:
    """Return a number of nanoseconds unchanged: nanoseconds are the unit of all window functions.

    Args:
        count: How many nanoseconds.

    Raises:
        WallarooParameterError: T207 if `count` is not an int.

    Example:
        >>> range_windows(nanoseconds(3_000_000))
        range_windows(3000000)

    Source: Wallaroo 0.6.
    """
    return _span("nanoseconds", count, 1)


def microseconds(count: int) -> int:
    """Convert microseconds to nanoseconds.

    Args:
        count: How many microseconds.

    Raises:
        WallarooParameterError: T207 if `count` is not an int.

    Example:
        >>> microseconds(5), microseconds(1_000_000) == seconds(1)
        (5000, True)

    Source: Wallaroo 0.6.
    """
    return _span("microseconds", count, 1000)


def milliseconds(count: int) -> int:
    """Convert milliseconds to nanoseconds.

    Args:
        count: How many milliseconds.

    Raises:
        WallarooParameterError: T207 if `count` is not an int.

    Example:
        >>> range_windows(milliseconds(250))
        range_windows(250000000)

    Source: Wallaroo 0.6.
    """
    return _span("milliseconds", count, 1_000_000)


def seconds(count: int) -> int:
    """Convert seconds to nanoseconds.

    Args:
        count: How many seconds.

    Raises:
        WallarooParameterError: T207 if `count` is not an int.

    Example:
        >>> seconds(2)
        2000000000

    Source: Wallaroo 0.6.
    """
    return _span("seconds", count, 1_000_000_000)


def minutes(count: int) -> int:
    """Convert minutes to nanoseconds.

    Args:
        count: How many minutes.

    Raises:
        WallarooParameterError: T207 if `count` is not an int.

    Example:
        >>> minutes(1), minutes(1) == seconds(60)
        (60000000000, True)

    Source: Wallaroo 0.6.
    """
    return _span("minutes", count, 60_000_000_000)


def hours(count: int) -> int:
    """Convert hours to nanoseconds.

    Args:
        count: How many hours.

    Raises:
        WallarooParameterError: T207 if `count` is not an int.

    Example:
        >>> range_windows(hours(1)).with_slide(minutes(30))
        range_windows(3600000000000).with_slide(1800000000000)

    Source: Wallaroo 0.6.
    """
    return _span("hours", count, 3_600_000_000_000)


def range_windows(range_ns: int) -> "RangeWindowsBuilder":
    """Describe windows of a fixed span of time, per key.

    Without `with_slide` each window begins at the end of the previous one. The time of a message is its event time if
    all sources provide one (Kafka, connectors, Spark with `timestamp`), otherwise the time of its arrival.

    Args:
        range_ns: Length of a window in nanoseconds. Times of messages are in milliseconds, so the length is rounded up
            to whole milliseconds, with a warning.

    Raises:
        WallarooParameterError: T207 if `range_ns` is not an int of 1 nanosecond to 365 days.

    Example:
        >>> windows = range_windows(seconds(9)).with_slide(seconds(3)).with_delay(seconds(1))
        >>> windows.with_late_data_policy("fire-per-message")
        range_windows(9000000000).with_slide(3000000000).with_delay(1000000000).with_late_data_policy('fire-per-message')

    Source: Wallaroo 0.6.
    """
    return RangeWindowsBuilder({"range": _in_ms("range_windows", "range_ns", range_ns, 1)})


def session_windows(gap_ns: int) -> "SessionWindowsBuilder":
    """Describe sessions, per key: windows that end when no message comes for a time, the gap.

    A session ends `gap_ns` after its last message. A message at exactly this time begins the next session. If a message
    lies between two open sessions, and is less than the gap away from both, `combine` joins them. The time of a message
    is as for `range_windows`.

    Args:
        gap_ns: How long a session waits for its next message, in nanoseconds; rounded up to whole milliseconds, with
            a warning.

    Raises:
        WallarooParameterError: T207 if `gap_ns` is not an int of 1 nanosecond to 365 days.

    Example:
        >>> session_windows(seconds(30)).with_delay(seconds(5)).with_late_data_policy("fire-per-message")
        session_windows(30000000000).with_delay(5000000000).with_late_data_policy('fire-per-message')
    """
    return SessionWindowsBuilder({"gap": _in_ms("session_windows", "gap_ns", gap_ns, 1)})


def count_windows(count: int) -> "CountWindowsBuilder":
    """Describe windows of a fixed number of messages, per key.

    A window that is not full is emitted if no message of its key arrives for 5 seconds.

    Args:
        count: Number of messages of a window.

    Raises:
        WallarooParameterError: T207 if `count` is not an int of 1 to 1,000,000,000.

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
    """Windows with their aggregation; made by `over`, and passed to `Pipeline.to`.

    Attributes:
        fields: Entry of the windows in the topology document, without the property `time`.
    """

    def __init__(self, fields: Mapping[str, Any], aggregation: Any) -> None:
        self.fields, self.aggregation = fields, aggregation

    def document(self, *, has_event_time: bool) -> dict[str, Any]:
        """Return the entry of the windows in the topology document."""
        if self.fields["kind"] == "count":
            return dict(self.fields)
        return {**self.fields, "time": "event" if has_event_time else "ingest"}


class TimedWindowsBuilder:
    """The common part of the builders of range windows and sessions. Each method returns a new builder."""

    _function, _size = "", ""  # name of the function that returns this builder, and of its parameter

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._given = fields

    def __repr__(self) -> str:
        text = f"{self._function}({self._given[self._size] * NS_PER_MS})"
        for name in ("slide", "delay"):
            if name in self._given:
                text += f".with_{name}({self._given[name] * NS_PER_MS})"
        return text + (f".with_late_data_policy({self._given['late']!r})" if "late" in self._given else "")

    def with_delay(self: B, delay: int) -> B:
        """Keep windows open for `delay` more nanoseconds, for late messages.

        For range windows the delay is rounded up to a multiple of the slide, which by default is the range.

        Raises:
            WallarooParameterError: T207 if `delay` is not 0 nanoseconds to 365 days, or a delay is set already.
        """
        return self._with("with_delay", "delay", _in_ms("with_delay", "delay", delay, 0, self._function))

    def with_late_data_policy(self: B, policy: str) -> B:
        """Set the policy for late messages, which are older than all open windows.

        Args:
            policy: "drop", the default, only counts late messages; "fire-per-message" emits each late message at once
                as a separate window, whose `bounds` begin and end at the message's time; "place-in-oldest-window" adds
                late messages to the oldest open window.

        Raises:
            WallarooParameterError: T207 if `policy` is another value, or a policy is set already.
        """
        if not isinstance(policy, str) or policy not in LATE:
            expected = " or ".join(f'"{name}"' for name in LATE)
            raise _wrong(policy, "with_late_data_policy", "policy", expected, self._function)
        return self._with("with_late_data_policy", "late", policy)

    def _fields(self, kind: str, **sizes: int) -> dict[str, Any]:
        """Return the entry of the windows in the topology document, without the property `time`."""
        late = LATE[self._given.get("late", "drop")]
        return {"kind": kind, **sizes, "delay_ms": self._given.get("delay", 0), "late": late}

    def _with(self: B, method: str, name: str, value: Any) -> B:
        if name in self._given:
            raise _wrong(value, method, name, f"one call of {method}", self._function)
        return type(self)({**self._given, name: value})


class RangeWindowsBuilder(TimedWindowsBuilder):
    """Describes windows over a span of time. Each method returns a new builder."""

    _function, _size = "range_windows", "range"

    def with_slide(self, slide: int) -> "RangeWindowsBuilder":
        """Begin a window every `slide` nanoseconds, at most the length of a window.

        Raises:
            WallarooParameterError: T207 if `slide` is not 1 nanosecond to the length of a window, or is set already.
        """
        slide_ms = _in_ms("with_slide", "slide", slide, 1)
        if slide_ms > self._given["range"]:
            raise _wrong(slide, "with_slide", "slide", f"at most the range, {self._given['range'] * NS_PER_MS}")
        return self._with("with_slide", "slide", slide_ms)

    def over(self, aggregation: Any) -> Windows:
        """Return the windows with their aggregation, an `Aggregation` class or object.

        A run refuses more than 100,000 open windows of a key (T271). Their number is range plus delay, divided by the
        slide.
        """
        range_ms = self._given["range"]
        slide_ms = self._given.get("slide", range_ms)
        return Windows(self._fields("range", range_ms=range_ms, slide_ms=slide_ms), aggregation)


class SessionWindowsBuilder(TimedWindowsBuilder):
    """Describes sessions. Each method returns a new builder."""

    _function, _size = "session_windows", "gap"

    def over(self, aggregation: Any) -> Windows:
        """Return the sessions with their aggregation, an `Aggregation` class or object.

        A run refuses more than 100,000 open sessions of a key (T271). Their number is gap plus delay, divided by the
        gap.
        """
        return Windows(self._fields("session", gap_ms=self._given["gap"]), aggregation)


class CountWindowsBuilder:
    """Describes windows of a number of messages."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __repr__(self) -> str:
        return f"count_windows({self._count})"

    def over(self, aggregation: Any) -> Windows:
        """Return the windows with their aggregation, an `Aggregation` class or object."""
        return Windows({"kind": "count", "count": self._count, "flush_ms": FLUSH_MS}, aggregation)


def _span(unit: str, count: int, factor: int) -> int:
    if not isinstance(count, int) or isinstance(count, bool):
        raise WallarooParameterError.of(
            called_from(), method=unit, parameter="count", actual=shown(count), expected="an int",
            fix=f"write e.g. wallaroo.{unit}(5); for a part of a unit take a smaller one",
        )  # fmt: skip
    return count * factor


def _in_ms(method: str, parameter: str, value: Any, least: int, function: str = "") -> int:
    """Return nanoseconds as whole milliseconds, rounded up with a warning. Errors show an example of `function`."""
    is_int = isinstance(value, int) and not isinstance(value, bool)
    rounded = -(-value // NS_PER_MS) if is_int else 0
    if not is_int or value < 0 or not least <= rounded <= MAX_MS:
        raise _wrong(value, method, parameter, f"nanoseconds, {least} ms to 365 days", function)
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
