"""`wallaroo run APP --watch`: refuses options that cannot be combined with --watch."""

import argparse

from wallaroo_runtime.cli.parser import refuse_together


def check_watch(arguments: argparse.Namespace) -> None:
    """Refuse options that cannot be combined with --watch.

    Raises:
        RunError: R608 if such an option was given.
    """
    why = {
        "--attach": arguments.attach and "a worker that is started already keeps its code",
        "--master": not arguments.master.startswith("local") and "a cluster has the code in an archive",
        "--engine memory": arguments.engine == "memory" and "that starts within a second",
    }
    refuse_together("--watch", why)
