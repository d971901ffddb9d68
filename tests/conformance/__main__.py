"""`python -m conformance --worker 'command'`: runs every check and says which failed."""

import argparse
import sys
import traceback

from conformance import crossing, damage, handshake, life, poison, sequence, stateful, stateless
from conformance.check import CHECKS, Context
from conformance.process import Worker

MODULES = (handshake, stateless, stateful, sequence, crossing, damage, poison, life)


def problem(error: BaseException) -> str:
    """Say in one line what was wrong and in which line of the driver."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "conformance" in f.filename]
    place = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    text = " ".join((str(error) or type(error).__name__).split())
    return f"{text[:600]} ({place})" if text != type(error).__name__ else f"{text}: {frames[-1].line} ({place})"


def run(command: str, only: str) -> int:
    """Run the checks; returns how many failed."""
    failed = count = 0
    with Worker(command) as worker:
        worker.handshake()
        context = Context(command, worker)
        for name, function in CHECKS.items():
            if only not in name:
                continue
            count += 1
            try:
                function(context)
            except Exception as error:
                failed += 1
                print(f"FAILED  {name}: {problem(error)}", flush=True)
            else:
                print(f"ok      {name}", flush=True)
    print(f"{count - failed} of {count} checks passed")
    return failed


def main(arguments: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("--worker", required=True, help="command that starts a worker of the conformance application")
    parser.add_argument("--only", default="", help="run the checks whose name contains this text")
    given = parser.parse_args(arguments)
    try:
        return 1 if run(given.worker, given.only) else 0
    except Exception as error:
        print(f"FAILED  start: {problem(error)}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
