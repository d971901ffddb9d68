"""Finds the times of rows that a test sends to a Spark source, from the column that the source declares."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from wallaroo.message.kit import Message
from wallaroo.message.timer import FIRST_MS, ms_of
from wallaroo_runtime.topology.model import Source, SparkSource

ROW = "*"  # the message of a source is the whole row, not an SQL expression


def with_row_time(source: Source, message: Message) -> Message:
    """Return a message with the time from its row. It is unchanged if it has a time, or if only Spark can find it."""
    if (
        not isinstance(source, SparkSource)
        or source.value != ROW
        or not source.timestamp
        or message.time_ms is not None
    ):
        return message
    name, row = source.timestamp.strip("`").lower(), message.value
    with suppress(ValueError):  # the decoder will report the fault of the row
        row = json.loads(bytes(row)) if isinstance(row, bytes | bytearray | memoryview) else row
        for column in row if isinstance(row, dict) else dir(row):
            if column.lower() == name:
                return replace(message, time_ms=_ms(row[column] if isinstance(row, dict) else getattr(row, column)))
    return message


def _ms(time: Any) -> int:
    if time is None:
        return FIRST_MS - 1  # an invalid time, as for null in Spark's rows; windows and timers report it
    if isinstance(time, int):
        return time
    return ms_of(datetime.fromisoformat(time.replace("Z", "+00:00") if isinstance(time, str) else time.isoformat()))
