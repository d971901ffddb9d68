"""`python -m conformance --worker 'command'`: runs every check and says which failed."""

import argparse
import sys
import time
import traceback

from conformance import every  # noqa: F401
from conformance.check import CHECKS, OPTIONAL, Context, capability_of, option_of


def problem(error: BaseException) -> str:
    """Say in one line what was wrong and in which line of the driver."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "conformance" in f.filename]
    place = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    text = " ".join((str(error) or type(error).__name__).split())
    return f"{text[:2000]} ({place})" if text != type(error).__name__ else f"{text}: {frames[-1].line} ({place})"


def failure(context: Context, name: str) -> str:
    """Run a check; returns what was wrong, or an empty text."""
    try:
        CHECKS[name](context)
    except Exception as error:
        ended = " ".join(context.how_workers_ended().split())
        return problem(error) + (f"; {ended}" if ended else "")
    return ""


def reason_to_leave_out(name: str, capabilities: set[str], without: set[str]) -> str:
    """Return why a check is none for this worker, or an empty text."""
    capability, option = capability_of(name), option_of(name)
    if capability and capability not in capabilities:
        return f"the worker does not name the capability {capability!r}"
    return f"--without {option}" if option in without else ""


def run(command: str, only: str, without: set[str]) -> int:
    """Run the checks; returns how many failed."""
    names = [name for name in CHECKS if only in name]
    if not names:
        print(f"FAILED  --only: no check's name contains {only!r}")
        return 1
    failed, begin = 0, time.monotonic()
    context = Context(command)
    try:
        assert context.worker.serving(), "the worker does not serve"
        reasons = {name: reason_to_leave_out(name, context.worker.capabilities, without) for name in names}
        left_out = [name for name, reason in reasons.items() if reason]
        for name in left_out:
            print(f"left out {name}: {reasons[name]}")
        names = [name for name in names if not reasons[name]]
        for name in names:
            wrong = failure(context, name)
            failed += bool(wrong)
            print(f"FAILED  {name}: {wrong}" if wrong else f"ok      {name}", flush=True)
    finally:
        context.close()
    told = f", {len(left_out)} left out" if left_out else ""
    print(f"{len(names) - failed} of {len(names)} checks passed in {time.monotonic() - begin:.1f} s{told}")
    return failed


def main(arguments: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="conformance", description=__doc__)
    parser.add_argument("--worker", required=True, help="command that starts a worker of the conformance application")
    parser.add_argument("--only", default="", help="run the checks whose name contains this text")
    options = sorted(set(OPTIONAL.values()))
    parser.add_argument(
        "--without", default=[], nargs="*", choices=options, help="what a worker may leave out, and this one does"
    )
    given = parser.parse_args(arguments)
    try:
        return 1 if run(given.worker, given.only, set(given.without)) else 0
    except Exception as error:
        print(f"FAILED  start: {problem(error)}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
