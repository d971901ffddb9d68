"""Tries the faults of each rule about calls: its checks must pass without a fault, and one must fail with it.

`python -m conformance.mutation` runs the Python worker within its own process, so that all faults take seconds.
"""

import os
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from typing import TextIO

from conformance import every  # noqa: F401
from conformance.__main__ import failure
from conformance.behaviour import behaving
from conformance.check import CHECKS, Context
from conformance.local import LocalWorker
from conformance.rule import RULES, Rule


def checks_of(rules: Iterable[Rule]) -> list[str]:
    """Return the names of the checks of some rules."""
    return [name for name in CHECKS if any(rule.has(name) for rule in rules)]


def first_failure(fault: str, checks: Iterable[str]) -> str:
    """Run checks of a worker with a fault up to the first that fails; returns its name and what was wrong."""
    with behaving(fault):
        context = Context("", lambda args, variables: LocalWorker(fault, args, variables))
        try:
            found = ((name, failure(context, name)) for name in checks)
            return next((f"{name}: {wrong}" for name, wrong in found if wrong), "")
        finally:
            context.close()


def main(only: str = "") -> int:
    """Print a line for each fault, and nothing that user code prints; returns the exit status."""
    report = sys.stdout
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        return run(only, report)


def run(only: str, report: TextIO) -> int:
    """Try the faults whose name contains a text; returns 1 when one was not noticed."""
    rules = [rule for rule in RULES if not rule.needs_process]
    wrong = "" if only else first_failure("none", checks_of(rules))
    print(f"WRONG  none: {wrong}" if wrong else "passed  none", file=report, flush=True)
    status = int(bool(wrong))
    for rule in rules:
        for fault in rule.faults:
            if only in fault:
                noticed = first_failure(fault, checks_of([rule]))
                status |= not noticed
                found = "noticed" if noticed else "UNNOTICED"
                print(f"{found}  {fault}: {rule.says}: {noticed}", file=report, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
