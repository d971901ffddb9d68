"""`wallaroo gateway --journal DIR --listen H:P`: receive for an application with a remote driver.

The gateway keeps what arrives on its own disk and serves it over gRPC. `wallaroo run --gateway H:P` configures
its sources; started again, it listens at once. Sources that only their worker can cut or make need the archive that is
run.
"""

import argparse
from contextlib import closing
from pathlib import Path
from typing import Any

from wallaroo_runtime.cli.service import add_service_parser, run_command


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = add_service_parser(subparsers, "gateway", "--journal", "a journal", __doc__)
    parser.add_argument("--archive", metavar="FILE", help="the packed application, if its workers cut or make messages")
    parser.add_argument("--worker-python", default="", metavar="PYTHON", help="runs Python workers; default: this one")


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped."""
    if not arguments.archive:
        return run_command("gateway", arguments)
    # Late: gRPC takes long to import.
    from wallaroo_runtime.archive.archive import check_platform, read_archive
    from wallaroo_runtime.peer.gateway_workers import HostedWorkers
    from wallaroo_runtime.topology.load import load

    archive = read_archive(Path(arguments.archive).absolute())
    check_platform(archive.path, archive.manifest)
    directory = Path(arguments.directory).absolute() / "workers"
    with closing(HostedWorkers(load(archive.topology), directory, archive, arguments.worker_python)) as workers:
        return run_command("gateway", arguments, workers)
