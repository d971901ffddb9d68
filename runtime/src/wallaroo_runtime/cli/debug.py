"""`wallaroo run APP --debug`: the application's worker is one process in this terminal."""

import argparse
import os
import socket
import sys
from dataclasses import replace
from importlib.util import find_spec

from wallaroo_runtime.cli.parser import refuse_together, wrong_usage
from wallaroo_runtime.monitor.access import LOOPBACK
from wallaroo_runtime.program.debug import foreground
from wallaroo_runtime.program.interpreter import check_interpreter, missing_modules
from wallaroo_runtime.run.options import PARTITIONS, RunOptions
from wallaroo_runtime.run.run import STARTING, execute, load
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.spark.master import shuffle_partitions

ANY, PORTS = "local[*]", 65_536


def check_debug(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go with --debug.

    Raises:
        RunError: R608; also where the port is in use, or debugpy is missing.
    """
    why = {
        "--json": arguments.json and "the terminal is the debugger's",
        "--attach": arguments.attach and "the worker is started here",
        "--master": not arguments.master.startswith("local") and "workers of a cluster have no terminal",
        "--engine memory": arguments.engine == "memory" and "breakpoint() stops there without it",
    }
    refuse_together("--debug", why)
    port = arguments.debug_port
    if port is None:
        return
    if not 0 < port < PORTS:
        raise wrong_usage(reason=f"--debug-port {port} is no port", fix=f"give 1 to {PORTS - 1}, e.g. 5678")
    python = arguments.worker_python
    if not _has_debugpy(python):
        fix = f"`{python or sys.executable} -m pip install debugpy`"
        raise wrong_usage(reason="--debug-port needs debugpy", fix=fix)
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError as error:
        reason = f"debugpy cannot listen at {LOOPBACK}:{port}; {os.strerror(error.errno or 0)}"
        fix = "stop the program that uses it, or give another port; those below 1024 are for root"
        raise wrong_usage(reason=reason, fix=fix) from error


def _has_debugpy(python: str) -> bool:
    """Return whether an interpreter, empty: this one, finds debugpy."""
    return not missing_modules(python, ("debugpy",)) if python else find_spec("debugpy") is not None


def execute_debugged(options: RunOptions, reporter: Reporter, port: int | None = None) -> int:
    """Run the application with its first worker in this terminal.

    Args:
        port: Where debugpy listens for an editor; None: nowhere.

    Returns:
        The exit code, as `execute`.

    Raises:
        RunError: As `execute`; R608, it is an archive, or a program that debugpy does not know; or the worker does not
            start.
    """
    app = options.app
    application = load(app, reporter)
    if application.archive:
        raise wrong_usage(reason="--debug takes no archive", fix="give the program that was packed")
    spark = options.spark
    check_interpreter(spark.worker_python, application.topology, is_here=True, is_packed=False)
    if spark.master == ANY:
        # One task at a time: two threads at breakpoints would read the terminal in turns.
        conf = {PARTITIONS: str(shuffle_partitions(ANY)), **spark.conf}
        spark = replace(spark, master="local[1]", conf=conf)
    reporter.doing(STARTING, f'starting worker "{application.topology.workers[0].name}" in this terminal')
    with foreground(application.topology, port, spark.worker_python) as (name, socket, process):
        is_python = application.topology.workers[0].language == "python"
        how = "q and c leave pdb" if is_python else f"`dlv attach {process}` stops it"
        how = f"debugpy listens at {LOOPBACK}:{port}" if port else how
        reporter.note(f'debug: worker "{name}" is process {process} in this terminal; no deadlines; {how}')
        return execute(replace(options, app=replace(app, attach={name: socket}), spark=spark), reporter, application)
