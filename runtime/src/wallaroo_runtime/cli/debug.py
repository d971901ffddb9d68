"""`wallaroo run APP --debug`: the application's worker is one process in this terminal."""

import argparse
from dataclasses import replace

from wallaroo_runtime.cli.parser import refuse_together, wrong_usage
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.program.debug import foreground
from wallaroo_runtime.run.options import PARTITIONS, RunOptions
from wallaroo_runtime.run.run import execute
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.spark.master import shuffle_partitions

ANY = "local[*]"


def check_debug(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go with --debug.

    Raises:
        RunError: R608.
    """
    why = {
        "--json": arguments.json and "the terminal is the debugger's",
        "--attach": arguments.attach and "the worker is started here",
        "--master": not arguments.master.startswith("local") and "workers of a cluster have no terminal",
        "--engine memory": arguments.engine == "memory" and "breakpoint() stops there without it",
    }
    refuse_together("--debug", why)


def execute_debugged(options: RunOptions, reporter: Reporter) -> None:
    """Run the application with its first worker in this terminal.

    Raises:
        RunError: As `execute`; R608, it is an archive; or the worker does not start.
    """
    app = options.app
    application = load_application(app.name, app.args, app.inputs, app.outputs)
    if application.archive:
        raise wrong_usage(reason="--debug takes no archive", fix="give the program that was packed")
    spark = options.spark
    if spark.master == ANY:
        # One task at a time: two threads at breakpoints would read the terminal in turns.
        conf = {PARTITIONS: str(shuffle_partitions(ANY)), **spark.conf}
        spark = replace(spark, master="local[1]", conf=conf)
    with foreground(application.topology) as (name, socket, process):
        reporter.note(f'debug: worker "{name}" is process {process} in this terminal; no deadlines; q and c leave pdb')
        execute(replace(options, app=replace(app, attach={name: socket}), spark=spark), reporter)
