"""`wallaroo egress --outbox DIR --listen H:P`: deliver the output of an application with a remote driver.

The egress gets output and dead letters from executors over gRPC, keeps them on its own disk, and sends output to the
sinks that `wallaroo run --egress H:P` names. After a restart it continues at once.
"""

import argparse
from typing import Any

from wallaroo_runtime.cli.service import add_service_parser, run_command


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    add_service_parser(subparsers, "egress", "--outbox", "an outbox", __doc__)


def run(arguments: argparse.Namespace) -> int:
    """Serve as an egress until a signal stops it."""
    return run_command("egress", arguments)
