"""`make bench-goka`: a counting group on Goka's own processor and on ours, the same program on the same broker.

Messages per second from the first record written to the last count in the table, and the time from one record to its
count. Ours counts exactly, and its table is written in transactions; Goka's is at least once.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.goka import Processor, Table, build_ours, build_own, click
from support.kafka import Broker

KEYS = 1000
SINGLE = 30


def measured(broker: Broker, binary: Path, folder: Path, name: str, partitions: int, messages: int) -> str:
    """Run one program over a topic of its own; returns the line of the table."""
    topic = f"clicks-{name}-{partitions}"
    broker.create(topic, partitions)
    processor = Processor(binary, folder / topic, broker, topic, f"count-{name}-{partitions}")
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
        for _ in range(SINGLE):
            time.sleep(source.uniform(0.2, 1.0))
            table.look(0)
            total = sum(table.counts.values())
            begin = time.monotonic()
            click(broker, topic, 1, KEYS)
            table.read_until(lambda counts, before=total: sum(counts.values()) > before)  # type: ignore[misc]
            times.append(1000 * (time.monotonic() - begin))
    finally:
        table.close()
        processor.end()
    cuts = statistics.quantiles(times, n=20)
    return (
        f"{name:<5} {partitions} partitions: {messages / seconds:>9,.0f} messages/s; one message median "
        f"{statistics.median(times):.0f} ms, 95 % {cuts[18]:.0f} ms"
    )


def compare(broker: Broker, folder: Path, partitions: Sequence[int], messages: int) -> None:
    """Measure both in turns."""
    binaries = {"goka": build_own(folder), "ours": build_ours(folder)}
    for number in partitions:
        for kind, binary in binaries.items():
            print(measured(broker, binary, folder, kind, number, messages), flush=True)


def main() -> int:
    """Start a broker and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--partitions", default="1,8")
    options = parser.parse_args()
    partitions = [int(each) for each in options.partitions.split(",")]
    with tempfile.TemporaryDirectory(prefix="wallaroo-goka-") as name:
        broker = Broker(Path(name))
        broker.start()
        try:
            compare(broker, Path(name), partitions, options.messages)
        finally:
            broker.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
