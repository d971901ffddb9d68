"""`make fault-goka`: one counting program on Goka's own processor and on ours, killed ten times while messages come.

What each has counted at the end is compared with what was written: ours must be equal, Goka's is shown.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from support.goka import Processor, Table, build_ours, build_own, click
from support.kafka import Broker

PARTITIONS = 8
SETTLE_S = 20.0
ROUND_S = (0.2, 1.5)  # from the messages of a round to its kill


def killed(broker: Broker, binary: Path, folder: Path, name: str, options: argparse.Namespace) -> tuple[int, str]:
    """Run one program with its kills; returns how many keys have a wrong count, and the line to print."""
    topic, source = f"clicks-{name}", random.Random(options.seed)
    broker.create(topic, PARTITIONS)
    processor = Processor(binary, folder / topic, broker, topic, f"count-{name}")
    processor.start()
    part, hits = options.messages // (options.kills + 1), Counter[str]()
    for number in range(options.kills):
        click(broker, topic, part, options.keys, number * part)
        time.sleep(source.uniform(*ROUND_S))
        victim = source.choice(sorted(processor.parts()))
        os.kill(processor.parts()[victim], signal.SIGKILL)
        hits[victim] += 1
        processor.end(signal.SIGKILL)
        processor.start()
    click(broker, topic, options.messages - options.kills * part, options.keys, options.kills * part)
    table = Table(broker, processor.group)
    counts = table.settle(SETTLE_S)
    table.close()
    processor.end()
    expected = {b"user-%d" % key: len(range(key, options.messages, options.keys)) for key in range(options.keys)}
    wrong = sum(counts.get(key, 0) != count for key, count in expected.items())
    kills = ", ".join(f"{count} of {part}" for part, count in sorted(hits.items()))
    more = sum(counts.values()) - options.messages
    return (
        wrong,
        f"{name}: {options.messages:,} messages of {options.keys:,} keys, kills {kills}: {wrong} wrong, sum {more:+,}",
    )


def main() -> int:
    """Run Goka's own, then ours; returns 1 when ours is not exact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wallaroo-goka-") as name:
        folder = Path(name)
        broker = Broker(folder)
        broker.start()
        try:
            for kind, binary in {"goka": build_own(folder), "ours": build_ours(folder)}.items():
                wrong, line = killed(broker, binary, folder, kind, options)
                print(f"{line}; seed {options.seed}", flush=True)
        finally:
            broker.stop()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
