"""Describes in words the message that became a dead letter: its key, its Kafka record, and its beginning."""

from typing import Any

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.message.key import readable
from wallaroo.worker._proto import worker_pb2 as pb


def shown_key(key: bytes) -> str:
    r"""Return a key as text if it can be printed, else in hexadecimal digits.

    Example:
        >>> shown_key(b"AAPL"), shown_key(bytes(7) + b"\x07")
        ('AAPL', '0x0000000000000007')
    """
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    return text if text.isprintable() else f"0x{key.hex()}"


def record_place(letter: pb.DeadLetter) -> dict[str, Any]:
    """Return source, topic, partition, offset and key of the Kafka record of a dead letter; empty if unknown."""
    if not letter.HasField("origin"):
        return {}
    origin = letter.origin
    key = {"key": shown_key(origin.key)} if origin.key else {}
    return {
        "source": origin.source,
        "topic": origin.topic,
        "partition": origin.partition,
        "offset": origin.offset,
        **key,
    }


def record_words(letter: pb.DeadLetter) -> str:
    """Return the Kafka record of a dead letter in words; empty if unknown.

    Example: `source "in", topic orders, partition 2, offset 13, key 'ann'`.
    """
    origin = record_place(letter)
    if origin:
        origin["source"] = f'"{origin["source"]}"'
        if "key" in origin:
            origin["key"] = shown(readable(letter.origin.key))
    return ", ".join(f"{name} {value}" for name, value in origin.items())


def letter_words(letter: pb.DeadLetter) -> str:
    """Return the message of a dead letter in words, to append to a finding, e.g. ` (key 'ann'; Order(count=0))`."""
    key = f"key {shown(readable(letter.key))}" if letter.has_key else ""
    preview = "".join(each if each.isprintable() else " " for each in letter.preview)
    words = "; ".join(filter(None, (key, record_words(letter), preview)))
    return f" ({words})" if words else ""
