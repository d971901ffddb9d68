"""`wallaroo egress --outbox DIR --listen H:P`: deliver for an application with a remote driver.

The egress keeps output and dead letters on its own disk, takes them from executors over gRPC, and sends them to the
sinks that `wallaroo run --egress H:P` names; started again, it goes on at once.
"""

import argparse
from typing import Any

from wallaroo_runtime.cli.service import add_service_parser, run_command


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    add_service_parser(subparsers, "egress", "--outbox", "an outbox", __doc__)


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped."""
    return run_command("egress", arguments)
