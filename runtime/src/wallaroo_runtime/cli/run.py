"""`wallaroo run APP`: run an application on Spark until it is stopped."""

import argparse
import os
import re
import shlex
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from wallaroo_runtime.cli.conf import bounds_of, conf_of, settings_help
from wallaroo_runtime.cli.gateway_option import remote_of
from wallaroo_runtime.cli.option import Split, arguments_of_app, split, tell_split
from wallaroo_runtime.cli.parser import app_of, refuse_together, wrong_usage
from wallaroo_runtime.cli.run_option import OWN, add_options, without_meaning
from wallaroo_runtime.console.reporter import JsonReporter, TextReporter
from wallaroo_runtime.monitor.access import LOOPBACK, OFF, TOKEN_FILE
from wallaroo_runtime.program.app import AppKind, resolve
from wallaroo_runtime.service.credential import read_token
from wallaroo_runtime.system.stop import signals_kill
from wallaroo_runtime.worker.interpreter import SETTING as WORKER_PYTHON

USED = frozenset(OWN)
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
UNIX = "unix://"
FREE = f"{LOOPBACK}:0"

split_arguments = partial(split, used=USED)


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser(
        "run",
        help="run an application",
        usage="wallaroo run APP [OPTIONS] [APP ARGS]",
        description=__doc__,
        epilog=f"{settings_help()}\n\nOptions that are not listed go to the application; -- ends those of `run`.",
    )
    add_run_options(parser)


PROGRAMS = "Python file, module or folder with app.py, Go directory, worker binary, topology file, archive"


def add_run_options(parser: argparse.ArgumentParser, *, is_submitted: bool = False) -> None:
    """Declare APP and the options of `run`. If `is_submitted`, declare only options that `submit` has, too."""
    parser.add_argument(
        "app",
        metavar="FILE" if is_submitted else "APP",
        nargs="?",
        help="archive, as `wallaroo pack` makes it, or topology file" if is_submitted else PROGRAMS,
    )
    add_options(parser, is_submitted=is_submitted)


def monitor_of(arguments: argparse.Namespace) -> str:
    """Return the address for the monitor of a run; empty if the run has no monitor.

    A driver that spark-submit has started has a monitor only on request, because others may read the printed URL.
    """
    from wallaroo_runtime.spark.machine.master import SUBMITTED  # late import, as for the engines

    address = arguments.monitor or (OFF if SUBMITTED in os.environ else FREE)
    return "" if address == OFF else str(address)


def sockets_of(texts: list[str], master: str) -> dict[str, Path]:
    """Return the sockets of the workers that `--attach` names, by name of the worker.

    Raises:
        RunError: R608 if a text names no worker or socket, or tasks run on other machines.

    Example:
        >>> sockets_of(["main=unix:///run/worker.sock"], "local[2]")
        {'main': PosixPath('/run/worker.sock')}
    """
    sockets = {}
    for text in texts:
        name, equals, target = text.partition("=")
        path = Path(target.removeprefix(UNIX))
        if not (name and equals and target.startswith(UNIX) and path.is_absolute()):
            reason = f"--attach {text} names no worker and its socket"
            raise wrong_usage(reason=reason, fix="give NAME=unix:///PATH, e.g. main=unix:///tmp/worker.sock")
        if name in sockets:
            raise wrong_usage(reason=f"--attach: worker {name} is named twice", fix="name it once")
        sockets[name] = path
    from wallaroo_runtime.spark.machine.master import cores  # late import, as for the engines

    if sockets and cores(master) is None:
        reason = f"--attach: tasks of the Spark master {master} run on other machines"
        raise wrong_usage(reason=reason, fix="leave out --master, or give local[N]")
    return sockets


def refuse_arguments(parts: Split) -> None:
    """Refuse arguments for the program of an archive or topology: its arguments were fixed when the file was made.

    Raises:
        RunError: R608 if there are such arguments.
    """
    if others := arguments_of_app(parts):
        reason = f"{' '.join(others)}: a packed application has its arguments already"
        raise wrong_usage(reason=reason, fix="give them to `wallaroo pack`")


def location_of(arguments: argparse.Namespace) -> str:
    """Return the URL that the command line gives as checkpoint; empty if the checkpoint is a local directory."""
    url = arguments.checkpoint or ""
    return url if URL.match(url) else ""


def run(arguments: argparse.Namespace) -> int:
    """Run an application until it is stopped, idle or complete, or until a signal ends its start."""
    app = app_of(arguments, "wallaroo run")
    if arguments.debug:
        refuse_together("--debug", {"--json": arguments.json and "the terminal is the debugger's"})
        arguments.engine = "memory"
    memory = "--debug" if arguments.debug else "--engine memory"
    for option in without_meaning(arguments) if arguments.engine == "memory" else ():
        raise wrong_usage(reason=f"{option} means nothing with {memory}", fix=f"leave out {option}, or {memory}")
    if arguments.available_now:
        why = arguments.stop_when_idle is not None and "it waits until all is delivered, however long that takes"
        refuse_together("--available-now", {"--stop-when-idle": why})
    if arguments.fresh and arguments.continue_goka:
        reason = "--fresh would count again what an earlier run has counted: Goka's offsets stay where they were"
        raise wrong_usage(reason=reason, fix="leave out one of the two; --continue-goka is for a new checkpoint")
    if arguments.continue_goka and arguments.mode == "realtime":
        reason = "--continue-goka begins a checkpoint of micro-batches"
        checkpoint = shlex.quote(arguments.checkpoint or app)
        fix = f"run it once without --mode, then `wallaroo state rescale {checkpoint} --mode realtime`"
        raise wrong_usage(reason=reason, fix=fix)
    if arguments.topic_reset == "end" and arguments.mode != "realtime":
        reason = "--topic-reset end is for --mode realtime: in micro-batches Spark keeps the offsets"
        raise wrong_usage(reason=reason, fix="--topic-reset start goes on with the records that are there")
    tell_split(arguments.parts)
    if arguments_of_app(arguments.parts) and resolve(app).kind in (AppKind.ARCHIVE, AppKind.TOPOLOGY):
        refuse_arguments(arguments.parts)
    if arguments.watch:
        _check_watch(arguments)
    is_shared = arguments.engine == "memory"
    reporter = JsonReporter() if arguments.json else TextReporter(is_quiet=arguments.quiet, is_shared=is_shared)
    with closing(reporter):
        return _run(arguments, app, reporter)


def _run(arguments: argparse.Namespace, app: str, reporter: JsonReporter | TextReporter) -> int:
    """Run an application on Spark or in memory, as the arguments say."""
    # Late: each engine imports much.
    if arguments.engine == "memory":
        with signals_kill():
            from wallaroo_runtime.cli.memory import run_in_memory

        return run_in_memory(arguments, app, reporter)
    with signals_kill():
        from wallaroo_runtime.run.options import AppOptions, CheckpointOptions, RunOptions, SparkOptions
        from wallaroo_runtime.run.reload import execute_watched
        from wallaroo_runtime.run.run import execute

    location, conf = location_of(arguments), conf_of(arguments.conf)
    options = RunOptions(
        app=AppOptions(
            app,
            tuple(arguments.parts.app),
            arguments.inputs,
            arguments.outputs,
            sockets_of(arguments.attach, arguments.master),
        ),
        checkpoint=CheckpointOptions(
            path=Path(arguments.checkpoint) if arguments.checkpoint and not location else None,
            location=location,
            fresh=arguments.fresh,
            continues_goka=arguments.continue_goka,
            accepts_changed=arguments.accept_changed,
            topic_reset=arguments.topic_reset,
        ),
        spark=SparkOptions(
            master=arguments.master,
            conf=conf,
            worker_python=conf.get(WORKER_PYTHON, ""),
        ),
        bounds=bounds_of(conf),
        remote=remote_of(arguments, conf),
        on_error=arguments.on_error,
        stop_when_idle=arguments.stop_when_idle,
        available_now=arguments.available_now,
        mode=arguments.mode,
        monitor=monitor_of(arguments),
        monitor_token=read_token(Path(conf[TOKEN_FILE])) if TOKEN_FILE in conf else "",
    )
    return execute_watched(options, reporter) if arguments.watch else execute(options, reporter)


def _check_watch(arguments: argparse.Namespace) -> None:
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
