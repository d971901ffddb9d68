"""The exit at sinks of Kafka and Spark, where messages leave a stage as records with keys."""

from typing import Any

from wallaroo.component.application import Sink
from wallaroo.message.kafka_record import RECORD
from wallaroo.message.key import key_bytes
from wallaroo.worker.stage.exit import KeyedExit
from wallaroo.worker.value.letter_box import WrongResultError

EXPECTED = "bytes or str, or a tuple (value, key) or (value, key, partition)"
MAX_PARTITION = 0x7FFFFFFF
_PARTITION = b"\x09\x00partition\x04\x00\x00\x00"


def makes_rows(sink: Sink) -> bool:
    """Return whether a sink's encoder may return a key and a partition in addition to the value."""
    return sink.kind != "tcp" and sink.fields.get("content") != RECORD


class RecordExit(KeyedExit):
    """Collects the results of a sink's encoder: values, each with a key and perhaps a partition."""

    def put(self, result: Any, message: Any, sequence: int) -> bool:
        """Add an encoder's result, or make a dead letter of its message. Return False if there is nothing to write.

        The loops of a stage add the usual result, a pair of short `bytes`, without this call.
        """
        try:
            value, key, headers = _parts(result)
        except (TypeError, ValueError) as err:
            is_text = isinstance(err, UnicodeEncodeError)
            error = err if is_text else WrongResultError(result, EXPECTED)
            self._box.add(self.path, self.name, message, sequence, error, code="C504" if is_text else "C501")
            return True  # a dead letter counts as taken
        if value is None:
            return False
        if self._box.refuses(self, message, sequence, len(value), key_size=len(key)):
            return True
        self.take(value, sequence, key, headers)
        return True

    def columns(self, more: dict[int, bytes], positions: range, timestamp_ms: int) -> dict[str, Any]:
        """Return the headers, with the partitions of records, as arguments with which `frame_of` writes them."""
        headers = [more.get(position, b"") for position in positions] if more else ()
        return {"timestamp_ms": timestamp_ms, "headers": headers if any(headers) else ()}


def _parts(result: Any) -> tuple[bytes | None, bytes, bytes]:
    """Return value and key of an encoder's result, and its partition as headers; these are empty if it has none."""
    value, key, partition = result, None, None
    if isinstance(result, tuple):
        value, key, partition = result if len(result) == 3 else (*result, None)
    if isinstance(value, str):
        value = value.encode()
    elif isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    elif value is not None and not isinstance(value, bytes):
        raise TypeError
    if partition is None:
        headers = b""
    elif isinstance(partition, int) and 0 <= partition <= MAX_PARTITION:
        headers = _PARTITION + partition.to_bytes(4, "little")
    else:
        raise TypeError
    return value, b"" if key is None else key_bytes(key), headers
