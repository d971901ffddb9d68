"""The times of rows that a test gives to a source of Spark: those of the column that the source names."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

from wallaroo.message.kit import Message
from wallaroo.message.timer import FIRST_MS
from wallaroo_runtime.topology.model import Source, SparkSource

EPOCH, MS = datetime(1970, 1, 1, tzinfo=timezone.utc), timedelta(milliseconds=1)
ROW = "*"  # in the place of the SQL of a message


def with_row_time(source: Source, message: Message) -> Message:
    """Return a message with the time of its row; as it is where it has one, or only Spark knows the SQL."""
    if (
        not isinstance(source, SparkSource)
        or source.value != ROW
        or not source.timestamp
        or message.time_ms is not None
    ):
        return message
    name, row = source.timestamp.strip("`").lower(), message.value
    try:
        row = json.loads(bytes(row)) if isinstance(row, bytes | bytearray | memoryview) else row
        names = row if isinstance(row, Mapping) else dir(row)
        column = next(each for each in names if each.lower() == name)
        return replace(message, time_ms=_ms(row[column] if isinstance(row, Mapping) else getattr(row, column)))
    except (ValueError, StopIteration):  # the decoder finds what is wrong with a row
        return message


def _ms(time: Any) -> int:
    if time is None:
        return FIRST_MS - 1  # as Spark's rows have it: windows and timers report it
    if isinstance(time, str):
        time = datetime.fromisoformat(time.replace("Z", "+00:00"))
    elif isinstance(time, date) and not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day)
    if isinstance(time, datetime):
        return ((time if time.tzinfo else time.replace(tzinfo=timezone.utc)) - EPOCH) // MS
    return int(time)
