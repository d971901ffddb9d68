"""Sends messages that spoil, end or hang their worker among many others, and proves that only they are missing.

`make poison`: 1,000,000 messages, 100 of them poison, in Python and in Go. They run through `wallaroo run`, sockets on
both sides; what the receiver gets, and the content of the dead letters, is compared with a count made here.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from support.run import MODES, TESTS, Receiver, Run, framed, wallaroo
from wallaroo_runtime.checkpoint.dead_letter import read_letters

PROGRAM = TESTS.parent / "runtime" / "tests" / "poison"
APPS = {"python": PROGRAM / "app.py", "go": PROGRAM}
DEADLINE_MS = 2000
KEYS = 500
SECONDS = 600.0
# What the messages do (README.md of the program), and the code of their dead letters. Go's type assertion panics.
CODES = {
    "python": {"decode": "C505", "raise": "C501", "wrong": "C503", "mutate": "C501"},
    "go": {"decode": "C505", "raise": "C501", "wrong": "C501", "mutate": "C501"},
}
for codes in CODES.values():
    codes |= {f"{place}-{how}": "C508" for place in ("first", "state") for how in ("exit", "kill")}
    codes |= {"first-hang": "C509", "state-hang": "C509"}


@dataclass(frozen=True)
class Script:
    """What is sent: `count` messages, some of which do something.

    Attributes:
        count: How many messages.
        actions: What the poison ones do, by their number.
    """

    count: int
    actions: dict[int, str]

    @classmethod
    def draw(cls, count: int, poison: int, seed: int) -> "Script":
        """Choose the positions of `poison` messages, of each kind equally many."""
        positions = random.Random(seed).sample(range(count), poison)
        kinds = list(CODES["python"])
        return cls(count, {position: kinds[turn % len(kinds)] for turn, position in enumerate(positions)})

    def payload(self, number: int) -> bytes:
        """Return a message."""
        action = self.actions.get(number, "ok")
        return b"\xff%d" % number if action == "decode" else f"k{number % KEYS} {action}".encode()

    def expected(self) -> Counter[str]:
        """Count the messages of each key that are no poison, one after the other."""
        return Counter(f"k{number % KEYS}" for number in range(self.count) if number not in self.actions)


def topology_of(language: str, folder: Path) -> Path:
    """Emit the program's topology with a short deadline; returns the file."""
    emitted = wallaroo("emit", APPS[language], cwd=folder)
    assert emitted.returncode == 0, emitted.stderr
    document = json.loads(emitted.stdout)
    for worker in document["workers"]:
        worker["call_deadline_ms"] = DEADLINE_MS
    path = folder / "topology.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def check_lines(lines: list[str], expected: Counter[str]) -> None:
    """Assert that each key's lines count 1, 2, 3, ... up to what was sent."""
    counts: Counter[str] = Counter()
    for line in lines:
        key, _, number = line.partition(" ")
        counts[key] += 1
        assert int(number) == counts[key], f"{line!r} comes where {counts[key]} belongs"
    assert counts == expected, f"{counts - expected} too many, {expected - counts} missing"


def check_letters(checkpoint: Path, script: Script, codes: dict[str, str]) -> None:
    """Assert that the poison messages, and no others, are dead letters, once each."""
    letters = [letter.record for letter in read_letters(checkpoint)]
    assert len(letters) == len(script.actions), f"{len(letters)} dead letters, expected {len(script.actions)}"
    found = {letter.sequence: letter.code for letter in letters}
    assert found == {number: codes[action] for number, action in script.actions.items()}
    for letter in letters:
        if script.actions[letter.sequence] == "wrong":
            continue  # what failed is what the computation made of it
        payload = script.payload(letter.sequence)
        told = letter.input if letter.code == "C505" else letter.preview.encode()
        assert payload in told, f"dead letter {letter.sequence} holds {told!r}, not {payload!r}"


def poison(language: str, script: Script, folder: Path, *options: str) -> str:
    """Run one language; returns what happened in one line.

    Args:
        language: Of the program.
        script: What is sent.
        folder: Is made; holds the checkpoint.
        options: Of `wallaroo run`.

    Raises:
        AssertionError: Something is missing, too much, or in the wrong order.
    """
    folder.mkdir()
    checkpoint, expected = folder / "checkpoint", script.expected()
    with Receiver() as receiver, Run(topology_of(language, folder), receiver, checkpoint, *options) as run:
        run.ready()
        began = time.monotonic()
        run.send(framed(map(script.payload, range(script.count))))
        ends = expected.total()
        run.wait_while_alive(
            lambda: run.last("messages_processed") >= script.count and receiver.data().count(b"\n") >= ends,
            lambda: f"{script.count} messages; {receiver.size} bytes received",
            SECONDS,
        )
        seconds = time.monotonic() - began
        assert run.stop() == 0, run.said()
        check_lines(receiver.lines(), expected)
        assert run.last("dead_letters") == len(script.actions)
    check_letters(checkpoint, script, CODES[language])
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(script.actions.values()).items()))
    return (
        f"{script.count:,} messages, {len(script.actions)} of them poison ({kinds}): {len(script.actions)} dead "
        f"letters, {ends:,} lines; differences 0; {seconds:.0f} s"
    )


def main() -> int:
    """Run the languages one after the other; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--poison", type=int, default=100, help="how many of the messages are")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--languages", default="python,go")
    parser.add_argument("--mode", choices=MODES, default="microbatch")
    options = parser.parse_args()
    script = Script.draw(options.messages, options.poison, options.seed)
    failed = False
    for language in options.languages.split(","):
        with tempfile.TemporaryDirectory(prefix="wallaroo-poison-") as folder:
            try:
                done = poison(language, script, Path(folder) / language, *MODES[options.mode])
                print(f"poison {language}, {options.mode}: {done}; seed {options.seed}")
            except AssertionError as error:
                print(f"poison {language}: {error}; seed {options.seed}", file=sys.stderr)
                failed = True
        sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
