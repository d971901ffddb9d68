"""`wallaroo gateway --journal DIR --listen H:P`: receive the messages of an application with a remote driver.

The gateway keeps messages on its own disk and serves them over gRPC. `wallaroo run --gateway H:P` configures its
sources. After a restart it listens at once.
"""

import argparse
from typing import Any

from wallaroo_runtime.cli.service import add_service_parser, run_command


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    add_service_parser(subparsers, "gateway", "--journal", "a journal", __doc__)


def run(arguments: argparse.Namespace) -> int:
    """Serve as a gateway until a signal stops it."""
    return run_command("gateway", arguments)
