"""`python -m model --applications 5000`: draws applications and compares what each gives."""

import argparse
import random
import sys
import time
from pathlib import Path

from model.application import GO, PYTHON, Application
from model.in_memory import run_in_memory
from model.outcome import Published
from model.search import search
from model.worker import Nursery

AT_ONCE = 250  # applications of one draw: the first ones of a draw are small


def main() -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="model", description=__doc__)
    parser.add_argument("--applications", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--language", choices=[PYTHON, GO], help="of all programs; without it both, and mixed ones")
    options = parser.parse_args()
    nursery, begun, ran = Nursery(), time.monotonic(), 0

    def run(application: Application, directory: Path) -> Published:
        return run_in_memory(application, nursery, directory)

    languages = (options.language,) if options.language else (PYTHON, GO)
    try:
        for number in range(options.seed, options.seed + options.applications):
            if ran >= options.applications:
                break
            ran += search(run, min(AT_ONCE, options.applications - ran), number=number, languages=languages)
            print(f"{ran} applications in {time.monotonic() - begun:.0f} s, all equal; seed {number}", flush=True)
    finally:
        nursery.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
