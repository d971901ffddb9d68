"""A program of two tables and a stream: a click gives how often, and in which order, its key's tables have changed."""

import zlib
from typing import Any

import wallaroo
from wallaroo import KafkaRecord


class Joined:
    """Of each table how many records there were, and a check of their values in order."""

    def __init__(self) -> None:
        self.tables: dict[str, tuple[int, int]] = {}

    def change(self, table: str, value: bytes | None) -> None:
        """Take a record of a table."""
        count, check = self.tables.get(table, (0, 0))
        self.tables[table] = count + 1, zlib.crc32(b"none" if value is None else value, check)

    def text(self) -> bytes:
        """Return what a click gives."""
        seen = [f"{name} {count} {check:08x}" for name, (count, check) in sorted(self.tables.items())]
        return "; ".join(seen).encode()


@wallaroo.state_computation("join", state=Joined)  # type: ignore[untyped-decorator]
def join(record: KafkaRecord, state: Joined) -> KafkaRecord | None:
    """Answer clicks; keep the rest."""
    if record.topic == "clicks":
        headers = (*record.headers, ("offset", str(record.offset).encode()))
        return KafkaRecord(key=record.key, value=state.text(), headers=headers)
    state.change(record.topic, record.value)
    return None


def source(topic: str, brokers: list[Any], *, table: bool) -> Any:
    """Return a pipeline of whole records."""
    config = wallaroo.KafkaSourceConfig(
        topic, brokers, "Warn", None, content="record", table=table, create={"partitions": 3}, name=topic
    )
    return wallaroo.source(topic, config)


def application_setup(args: list[str]) -> Any:
    """Declare it; the last argument is a broker."""
    brokers = [tuple(args[-1].split(":"))]
    out = wallaroo.KafkaSinkConfig(
        "seen", brokers, "Warn", 5, 1_000_000, None, content="record", exactly_once=True, create={"like": "clicks"},
        options={"kafka.partitioner": "fnv1a"},
    )  # fmt: skip
    tables = source("users", brokers, table=True).merge(source("prices", brokers, table=True))
    return wallaroo.build_application(
        "Joined", source("clicks", brokers, table=False).merge(tables).to(join).to_sink(out)
    )
