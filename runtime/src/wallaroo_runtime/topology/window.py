"""How messages are taken together."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """Which messages an aggregation takes together; what the other kind has is 0 or empty.

    Attributes:
        kind: `range` or `count`.
        range_ms: Length of a window.
        slide_ms: From the begin of one window to that of the next.
        delay_ms: How long a window waits for late messages.
        late: What a late message does: `drop`, `fire_per_message` or `place_in_oldest_window`.
        time: Which time counts: `ingest` or `event`.
        count: How many messages make a window.
        flush_ms: Without a message for so long, a window that is not full is emitted.
    """

    kind: str
    range_ms: int = 0
    slide_ms: int = 0
    delay_ms: int = 0
    late: str = ""
    time: str = ""
    count: int = 0
    flush_ms: int = 0
