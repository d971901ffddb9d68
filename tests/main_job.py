"""The README's main job: the word count, in Python and then in Go, on real text over real sockets.

Starts `wallaroo receive`, `wallaroo run` and `wallaroo send` as a user would, in three terminals, prints the ten most
frequent words, and compares every count with a count made here, without the project's code.
"""

import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic

HERE = Path(__file__).resolve().parent
TEXT = HERE / "bill_of_rights.txt"
WALLAROO = Path(sys.executable).with_name("wallaroo")
PUNCTUATION = " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
DEADLINE_S = 300
DEAD_LETTER = "R740 "


def expected_counts() -> tuple[Counter[str], int]:
    """Count the words of the text, and the empty ones that the program's partition function cannot take."""
    words = [
        word.strip(PUNCTUATION)
        for line in TEXT.read_text(encoding="utf-8").splitlines()
        for word in line.lower().strip(PUNCTUATION).split(" ")
    ]
    return Counter(word for word in words if word), words.count("")


def free_port() -> int:
    """Return a loopback port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def findings(text: str) -> Iterator[str]:
    """Yield as text what a run with `--json` has reported, without dead letters: `main` counts those.

    Their remedy would name a checkpoint that is gone when a user reads it.
    """
    for line in text.splitlines():
        found = map(Diagnostic.from_json, json.loads(line)) if line.startswith("[{") else [line]
        yield from (f"{each}\n" for each in found if not str(each).startswith(DEAD_LETTER))


def run_job(title: str, app: Path, folder: Path) -> tuple[Counter[str], int]:
    """Run one word count over the text; return the counts that arrived and the number of dead letters."""
    source, sink = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    output = folder / "received.txt"
    run_command = [
        WALLAROO, "run", app, "--in", source, "--out", sink,
        "--checkpoint", folder / "checkpoint", "--stop-when-idle", "3", "--json",
    ]  # fmt: skip
    print(f"\n== {title}: wallaroo run {app.relative_to(HERE.parent)} --in {source} --out {sink}", flush=True)
    receiver = subprocess.Popen([WALLAROO, "receive", "--listen", sink, "--output", output])
    lines: list[str] = []
    engine = subprocess.Popen(list(map(str, run_command)), stderr=subprocess.PIPE, text=True)
    try:
        assert engine.stderr is not None
        for line in engine.stderr:
            lines.append(line)
            if line.startswith("{") and json.loads(line).get("state") == "initialized":
                break
        else:
            sys.exit(f"{title}: the application ended before it was initialized (exit code {engine.wait()})")
        print(f"== wallaroo send --host {source} --file {TEXT.name}", flush=True)
        subprocess.run([WALLAROO, "send", "--host", source, "--file", TEXT], check=True, timeout=DEADLINE_S)
        lines += engine.stderr
        last = next(json.loads(line) for line in reversed(lines) if line.startswith("{"))
        code = engine.wait(timeout=DEADLINE_S)
        if code:
            sys.exit(f"{title}: wallaroo run ended with exit code {code}")
    finally:
        for process in (engine, receiver):
            process.terminate()
            process.wait(timeout=20)
        print("".join(findings("".join(line for line in lines if not line.startswith("{")))), end="")
    counts: Counter[str] = Counter()
    for line in output.read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r"(.+) => ([0-9]+)", line)
        if match is None:
            sys.exit(f"{title}: an output line that no word count writes: {line!r}")
        if int(match[2]) != counts[match[1]] + 1:
            sys.exit(f"{title}: after {match[1]} => {counts[match[1]]} came {line}")
        counts[match[1]] += 1
    return counts, int(last["dead_letters"])


def main() -> int:
    """Run both jobs and compare."""
    expected, empty = expected_counts()
    case = HERE / "cases" / "word_count"
    for title, app in (("Python", case / "app.py"), ("Go", case)):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="wallaroo-run-") as folder:
            counts, dead_letters = run_job(title, app, Path(folder))
        print(f"== {title}: the ten most frequent words")
        for word, count in counts.most_common(10):
            print(f"{word} => {count}")
        if counts != expected:
            wrong = sorted((counts - expected) + (expected - counts))
            sys.exit(f"{title}: counts differ from the independent count, for {len(wrong)} words such as {wrong[:5]}")
        if dead_letters != empty:
            sys.exit(f"{title}: {dead_letters} dead letters; the text has {empty} empty words")
        print(
            f"== {title}: {counts.total()} words, {len(counts)} distinct, all counts equal an independent count; "
            f"{dead_letters} empty words became dead letters ({time.monotonic() - begin:.0f} s)",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
