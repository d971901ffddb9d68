"""Reads the frames of sinks whose encoders give records: key, value and partition."""

from collections.abc import Iterator

from wallaroo.frame import Frame, read_frame

PARTITION = b"partition"


def rows_of(data: bytes, at: int) -> Iterator[tuple[bytes | None, bytes | None, int | None]]:
    """Yield key, value and partition of each message of a frame; None: it has none."""
    return records_of(read_frame(data, at))


def records_of(frame: Frame) -> Iterator[tuple[bytes | None, bytes | None, int | None]]:
    """Do what `rows_of` does, for a frame that was read."""
    absent = set(frame.absent)
    for number, value in enumerate(frame.values()):
        key = frame.keys[frame.key_indexes[number]] if frame.keys else b""
        partition = partition_of(frame.headers[number]) if frame.headers else None
        yield key or None, None if number in absent else value, partition


def partition_of(headers: bytes) -> int | None:
    """Return the partition that an encoder chose; None when it chose none."""
    at = 0
    while at < len(headers):
        name_end = at + 2 + int.from_bytes(headers[at : at + 2], "little")
        end = name_end + 4 + int.from_bytes(headers[name_end : name_end + 4], "little")
        if headers[at + 2 : name_end] == PARTITION:
            return int.from_bytes(headers[name_end + 4 : end], "little", signed=True)
        at = end
    return None
