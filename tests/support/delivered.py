"""An outbox whose output was delivered."""

from pathlib import Path

from support.delivery import frame_of
from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo_runtime.durable.record import pack_line
from wallaroo_runtime.storage.outbox.live import OPENING, OUTPUT, Entry
from wallaroo_runtime.storage.outbox.live_log import LiveLog


def delivered(path: Path, sequence: int, port: int) -> None:
    """Let the live log have a result of the message of a sequence."""
    live = LiveLog(path / "outbox", path / "dead-letters")
    writer = {"epoch": 1, "query": "query-1", "batch": 0, "partition": 0, "attempt": 1}
    live.append(Entry(OPENING, content=pack_line(writer)))
    place = 0 if port == DEAD_LETTER_PORT else sequence
    live.append(Entry(OUTPUT, port, 0, 0, 0, place, 1, frame_of([(sequence, b"result")], port)))
    live.sync()
    live.close()
