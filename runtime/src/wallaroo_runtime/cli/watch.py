"""`wallaroo run APP --watch`: which options do not go with it."""

import argparse

from wallaroo_runtime.cli.parser import usage_error


def check_watch(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go with --watch.

    Raises:
        RunError: R608.
    """
    why = {
        "--debug": arguments.debug and "the debugger's worker would be another one after each change",
        "--attach": arguments.attach and "a worker that is started already keeps its code",
        "--pin-code": arguments.pin_code and "that refuses changed code",
        "--master": not arguments.master.startswith("local") and "a cluster has the code in an archive",
        "--engine memory": arguments.engine == "memory" and "that starts within a second",
    }
    for option, reason in why.items():
        if reason:
            text = f"--watch does not go with {option}: {reason}"
            raise usage_error(text, "", (), f"leave out {option}, or --watch", "wallaroo run")
