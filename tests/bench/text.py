"""Messages for the bench: lines of eight words, drawn from a vocabulary as skewed as a language's."""

import random
from itertools import accumulate
from pathlib import Path

from wallaroo_runtime.storage.journal.writer import JournalWriter

FRAME_MESSAGES = 16_384  # about what the gateway puts into one frame of at most 1 MiB
SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo yu za cri pla sto thra ne li"


def vocabulary(size: int, seed: int = 1) -> list[str]:
    """Return different words of two to four syllables, with the initials that the syllables have."""
    source, syllables = random.Random(seed), SYLLABLES.split()
    words: dict[str, None] = {}
    while len(words) < size:
        words["".join(source.choices(syllables, k=source.randint(2, 4)))] = None
    return list(words)


def fill_journal(directory: Path, messages: int, *, words: int = 5_000, per_message: int = 8, seed: int = 2) -> int:
    """Write messages to a new journal; returns their bytes."""
    source, known = random.Random(seed), vocabulary(words)
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(known))))
    writer = JournalWriter(directory)
    size = 0
    for start in range(0, messages, FRAME_MESSAGES):
        count = min(FRAME_MESSAGES, messages - start)
        drawn = source.choices(known, cum_weights=weights, k=count * per_message)
        parts = []
        for number in range(count):
            line = " ".join(drawn[number * per_message : (number + 1) * per_message]).encode()
            parts.append(len(line).to_bytes(4, "big") + line)
        data = b"".join(parts)
        writer.append(0, count, [data], timestamp_ms=0)
        size += len(data)
    writer.sync()
    writer.publish()
    writer.close()
    return size
