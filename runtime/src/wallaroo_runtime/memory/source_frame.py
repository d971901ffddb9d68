"""Packs messages of a source into frames, as gateway and Spark do."""

from collections.abc import Callable, Iterator, Sequence

from wallaroo.message.frame import FRAMED, TICK_PORT, VISIT_PORT, FrameHeader, encode_frame, write_frame
from wallaroo.message.memory_message import Message
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.gateway.framing import KINDS, framer
from wallaroo_runtime.topology.model import Source, TcpSource

FRAME_MESSAGES = 8192
MOST_TICKS = 1000  # limit for one call of `advance`; `wallarootest` has the same limits
MOST_AGAIN = 10_000  # limit for the repetitions of the last tick


def wire_frames(
    source: TcpSource, port: int, payloads: Sequence[bytes], sequence: int, *, now_ms: int
) -> Iterator[bytes]:
    """Yield frames of payloads with their framing, as TCP delivers them.

    Args:
        source: Determines the framing. If only the decoder knows the framing, each payload begins with its header.
    """
    kind = source.framing.kind
    framed = framer(kind) if kind in KINDS else None
    for start in range(0, len(payloads), FRAME_MESSAGES):
        part = payloads[start : start + FRAME_MESSAGES]
        body = [framed(payload) for payload in part] if framed else part
        yield write_frame(FrameHeader(port, len(part), sequence + start, 0, FRAMED, now_ms), body)


def value_frames(
    source: Source, port: int, messages: Sequence[Message], sequence: int, *, now_ms: int, encoding: int
) -> Iterator[bytes]:
    """Yield frames with values in the given encoding. The other arguments are as for `wire_frames`."""
    for start in range(0, len(messages), FRAME_MESSAGES):
        part = messages[start : start + FRAME_MESSAGES]
        times = [now_ms if message.time_ms is None else message.time_ms for message in part]
        earliest = min(times)
        keys: dict[bytes, int] = {}
        indexes = [keys.setdefault(message.key, len(keys)) for message in part] if source.gives_keys else []
        yield encode_frame(
            [message.value for message in part],
            port=port,
            sequence=sequence + start,
            encoding=encoding,
            timestamp_ms=earliest,
            keys=list(keys),
            key_indexes=indexes,
            timestamps=() if max(times) == earliest else [time - earliest for time in times],
        )


def visit_frame(sequence: int, now_ms: int, visit: pb.Visit) -> bytes:
    """Return the frame of a visit."""
    value = visit.SerializeToString()
    return encode_frame([value], port=VISIT_PORT, sequence=sequence, timestamp_ms=now_ms)


def tick_frames(sequence: int, now_ms: int, milliseconds: int, interval_ms: int) -> list[bytes]:
    """Return the ticks that a gateway would write while time passes: the first, the last, and about `MOST_TICKS` more.

    The first tick has the present time, so that a key is silent for exactly the time that passes.

    Args:
        interval_ms: Time between two ticks; 0 if no step needs ticks.

    Raises:
        RunError: T207 if time would go back.
    """
    if milliseconds < 0:
        fix, time = "let time pass, and give messages that came earlier their own time", f"{milliseconds / 1000:g} s"
        raise RunError.of("T207", USAGE, method="advance", parameter="time", actual=time, expected="0 or more", fix=fix)
    end_ms, step_ms = now_ms + milliseconds, max(interval_ms or milliseconds, milliseconds // MOST_TICKS, 1)
    times = [now_ms, *range(now_ms - now_ms % step_ms + step_ms, end_ms, step_ms), end_ms]
    # As in a journal, each tick has its own sequence: windows downstream of windows process the ticks one by one.
    return [tick_frame(sequence + number, time_ms) for number, time_ms in enumerate(times)]


def repeat_last_tick(tick: Callable[[], int], milliseconds: int) -> None:
    """Repeat the last tick of `advance` until no timer runs: each timer may set another one for the same time.

    Args:
        tick: Processes the tick, and returns the number of timers that ran.

    Raises:
        RunError: R721 if a timer still runs at the last repetition.
    """
    most = min(MOST_AGAIN, milliseconds + MOST_TICKS)
    if all(tick() for _ in range(most)):
        reason = f"timers still run after {most} more ticks of this time: one sets itself to a time that is over"
        fix, value = "let it set itself to a later time, or not in each run", f"{milliseconds / 1000:g} s"
        raise RunError.of("R721", USAGE, place="advance", value=value, reason=reason, fix=fix)


def tick_frame(sequence: int, now_ms: int) -> bytes:
    """Return the frame of a tick."""
    return write_frame(FrameHeader(TICK_PORT, 0, sequence, 0, FRAMED, now_ms), [])
