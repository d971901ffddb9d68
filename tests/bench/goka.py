"""`make bench-goka`: a counting group on Goka's own processor and on ours, the same program on the same broker.

Ours runs in micro-batches, and in real-time mode.

Messages per second from the first record written to the last count in the table, and the time from one record to its
count. Ours counts exactly, and its table is written in transactions; Goka's is at least once. `make bench` has a short
form of it.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.goka import Processor, Table, build_ours, build_own, click
from support.kafka import Broker
from support.run import WALLAROO

KEYS, LOOK_S = 1000, 0.002
REALTIME = "realtime"
KINDS = ("goka", "ours", REALTIME)
MODES = {"ours": (REALTIME,)}
ROW = "{:<10} {:>10} {:>12} {:>12} {:>12}"


class Length(NamedTuple):
    """How much is measured.

    Attributes:
        messages: For the rate.
        singles: How many messages come alone, for the latency.
        pause_s: At most so long before each of them.
    """

    messages: int
    singles: int
    pause_s: float


WHOLE, SHORT = Length(500_000, 30, 1.0), Length(100_000, 20, 0.4)


def in_realtime(folder: Path) -> dict[str, str]:
    """Return the environment of a program that runs in real-time mode."""
    script = folder / "realtime"
    script.write_text(f'#!/bin/sh\n[ "$1" = run ] && set -- "$@" --mode realtime\nexec "{WALLAROO}" "$@"\n')
    script.chmod(0o700)
    return {"WALLAROO": str(script)}


def measured(
    broker: Broker, binary: Path, folder: Path, name: str, partitions: int, length: Length, **environment: str
) -> str:
    """Run one program over a topic of its own; returns the line of the table."""
    messages = length.messages
    topic = f"clicks-{name}-{partitions}"
    broker.create(topic, partitions)
    processor = Processor(binary, folder / topic, broker, topic, f"count-{name}-{partitions}", **environment)
    processor.start()
    table = Table(broker, processor.group)
    try:
        click(broker, topic, KEYS, KEYS)
        table.read_until(lambda counts: sum(counts.values()) >= KEYS)  # everything is warm
        begin = time.monotonic()
        click(broker, topic, messages, KEYS)
        table.read_until(lambda counts: sum(counts.values()) >= KEYS + messages)
        seconds = time.monotonic() - begin
        times, source = [], random.Random(7)
        sender = Producer({"bootstrap.servers": broker.address, "partitioner": "fnv1a", "linger.ms": 0})
        for _ in range(length.singles):
            time.sleep(source.uniform(length.pause_s / 5, length.pause_s))
            table.look(0)
            total = sum(table.counts.values())
            begin = time.monotonic()
            sender.produce(topic, b"click", key=b"user-0")
            sender.poll(0)
            table.read_until(lambda counts, before=total: sum(counts.values()) > before, look_s=LOOK_S)  # type: ignore[misc]
            times.append(1000 * (time.monotonic() - begin))
        sender.flush(60)
    finally:
        table.close()
        processor.end()
    cuts = statistics.quantiles(times, n=20)
    return ROW.format(
        name, partitions, f"{messages / seconds:,.0f}", f"{statistics.median(times):.0f} ms", f"{cuts[18]:.0f} ms"
    )


def compare(broker: Broker, folder: Path, partitions: Sequence[int], length: Length, only: Sequence[str]) -> None:
    """Measure all in turns."""
    builds = {"goka": build_own, "ours": build_ours}
    binaries = {kind: build(folder) for kind, build in builds.items() if {kind, *MODES.get(kind, ())} & {*only}}
    kinds = [(kind, binary) for known, binary in binaries.items() for kind in (known, *MODES.get(known, ()))]
    print(f"a group that counts, {length.messages:,} messages of {KEYS} keys; latency of one message to its count")
    print(ROW.format("processor", "partitions", "messages/s", "median", "95 %"), flush=True)
    for number in partitions:
        for kind, binary in kinds:
            own = in_realtime(folder) if kind == REALTIME else {}
            if kind in only:
                print(measured(broker, binary, folder, kind, number, length, **own), flush=True)


def main() -> int:
    """Start a broker and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="fewer messages: a look, no measurement to publish")
    parser.add_argument("--messages", type=int)
    parser.add_argument("--partitions", default="1,8")
    parser.add_argument("--only", choices=KINDS, nargs="+", default=KINDS)
    options = parser.parse_args()
    length = SHORT if options.short else WHOLE
    length = length._replace(messages=options.messages or length.messages)
    partitions = [int(each) for each in options.partitions.split(",")]
    with tempfile.TemporaryDirectory(prefix="wallaroo-goka-") as name:
        broker = Broker(Path(name))
        broker.start()
        try:
            compare(broker, Path(name), partitions, length, options.only)
        finally:
            broker.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
