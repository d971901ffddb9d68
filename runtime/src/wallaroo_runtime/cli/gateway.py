"""`wallaroo gateway --journal DIR --listen H:P`: receive for an application with a remote driver.

The gateway keeps what arrives on its own disk and serves it over gRPC. `wallaroo run --gateway H:P` configures
its sources; started again, it listens at once.
"""

import argparse
from typing import Any

from wallaroo_runtime.cli.service import add_service_parser, run_command


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    add_service_parser(subparsers, "gateway", "--journal", "a journal", __doc__)


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped."""
    return run_command("gateway", arguments)
