"""`wallaroo run APP`: run an application on Spark until it is stopped."""

import argparse
import os
import re
import shlex
from contextlib import closing
from pathlib import Path
from typing import Any

from wallaroo_runtime.cli.gateway_option import add_remote, remote_of
from wallaroo_runtime.cli.option import OWN, Split, split
from wallaroo_runtime.cli.parser import app_of, refuse_together, tell_split, wrong_usage
from wallaroo_runtime.cli.size import add_bounds, bounds_of
from wallaroo_runtime.console.reporter import JsonReporter, TextReporter
from wallaroo_runtime.monitor.access import LOOPBACK, parse_address
from wallaroo_runtime.system.stop import signals_kill

USED = frozenset(OWN)
MAX_PARTITIONS = 10_000
BATCH_SETTING = "spark.wallaroo.realtime.batchSeconds"
SECONDS = re.compile(r"(?=.*[1-9])[0-9]{1,9}(?:\.[0-9]{1,3})?")
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
UNIX = "unix://"
FREE, OFF = f"{LOOPBACK}:0", "off"
MAX_IDLE_S = 1_000_000_000.0


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser(
        "run",
        help="run an application",
        usage="wallaroo run APP [OPTIONS] [APP ARGS]",
        description=__doc__,
        epilog="Options that are not listed go to the application; -- ends the options of `run`.",
    )
    parser.add_argument(
        "--engine", choices=["spark", "memory"], default="spark", help="memory: a first look, in this process alone"
    )
    parser.add_argument(
        "--quiet", action="store_true", help="show no status line, and not what the application's workers print"
    )
    what = "the same as --engine memory, without a status line: breakpoint() stops in this terminal"
    parser.add_argument("--debug", action="store_true", help=what)
    what = "with --engine memory: find changes of state that are not persisted; slow"
    parser.add_argument("--check-persist", action="store_true", help=what)
    what = "load the program again when its files change; Spark stays warm"
    parser.add_argument("--watch", action="store_true", help=what)
    what = "use a worker that is started already, e.g. under a debugger"
    parser.add_argument("--attach", action="append", default=[], metavar="NAME=unix:///PATH", help=what)
    add_run_options(parser)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Declare what `run` and `submit` have in common."""
    parser.add_argument(
        "app",
        metavar="APP",
        nargs="?",
        help="Python file, module or folder with app.py, Go directory, worker binary, topology file, archive",
    )
    add = parser.add_argument
    add("--in", "-i", dest="inputs", default="", metavar="[NAME@]H:P,...", help="where the sources listen")
    add("--out", "-o", dest="outputs", default="", metavar="[NAME@]H:P,...", help="where the sinks send to")
    add("--master", default="local[*]", metavar="URL", help="Spark master; default: local[*], this machine")
    what = "realtime: milliseconds, for what `explain` says it can run; default: %(default)s"
    add("--mode", choices=["microbatch", "realtime"], default="microbatch", help=what)
    add("--checkpoint", metavar="DIR|URL", help="default: a directory of the application in ~/.local/state/wallaroo")
    add("--fresh", action="store_true", help="start over: remove what the application's checkpoint holds")
    what = "a new checkpoint begins with the tables and offsets that Goka's own processors left"
    add("--continue-goka", action="store_true", help=what)
    what = "go on there where records are gone (R792) or a topic was created again (R738); end: real-time mode only"
    add("--topic-reset", choices=["start", "end"], default="", help=what)
    add("--on-error", choices=["dead_letter", "fail"], default="", help="when user code fails, unless its step says")
    what = "go on with a changed program that loses fields of states (R605) or repeats what has left (R790)"
    add("--accept-changed", action="store_true", help=what)
    add("--stop-when-idle", type=float, metavar="SECONDS", help="stop when nothing came in for so long")
    add("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark; may be repeated")
    add("--worker-python", default="", metavar="PATH", help="interpreter of Python workers; default: Spark's own")
    add_bounds(parser)
    add_remote(parser)
    what = f"where the page, metrics and API listen; off: nowhere; default: {LOOPBACK}, a free port"
    add("--monitor", metavar="[H:P|off]", default="", help=what)
    add("--json", action="store_true", help="progress and findings as JSON")


def split_arguments(tokens: list[str]) -> Split:
    """Separate the command's own arguments from the application's."""
    return split(joined(tokens), USED)


def joined(tokens: list[str]) -> list[str]:
    """Return the words with the address after `--monitor` joined to it; without one it is a free port of this machine.

    Example:
        >>> joined(["--monitor", "app.py"]), joined(["--monitor", ":8080", "app.py"])
        (['--monitor=127.0.0.1:0', 'app.py'], ['--monitor=:8080', 'app.py'])
        >>> joined(["--monitor", "off", "app.py"])
        ['--monitor=off', 'app.py']
    """
    found: list[str] = []
    rest = iter(range(len(tokens)))
    for at in rest:
        if tokens[at] == "--":
            return found + tokens[at:]
        if tokens[at] != "--monitor":
            found.append(tokens[at])
        elif at + 1 < len(tokens) and (tokens[at + 1] == OFF or parse_address(tokens[at + 1])):
            found.append(f"--monitor={tokens[next(rest)]}")
        else:
            found.append(f"--monitor={FREE}")
    return found


def monitor_of(arguments: argparse.Namespace) -> str:
    """Return where the monitor shall listen; empty: nowhere.

    A driver that spark-submit has started shows it only if asked to: what it prints may be for others to read.
    """
    from wallaroo_runtime.spark.machine.master import SUBMITTED  # late: as the engines

    place = arguments.monitor or (OFF if SUBMITTED in os.environ else FREE)
    return "" if place == OFF else str(place)


def conf_of(texts: list[str]) -> dict[str, str]:
    """Return the settings that `--conf` gives.

    Raises:
        RunError: R608.

    Example:
        >>> conf_of(["spark.executor.cores=2", "spark.executor.extraJavaOptions=-Da=b"])
        {'spark.executor.cores': '2', 'spark.executor.extraJavaOptions': '-Da=b'}
    """
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            reason = f"--conf {text} is no setting of Spark"
            raise wrong_usage(reason=reason, fix="give NAME=VALUE, e.g. spark.executor.cores=2")
        if name == "spark.sql.shuffle.partitions" and not (value.isdigit() and 0 < int(value) <= MAX_PARTITIONS):
            raise wrong_usage(reason=f"--conf {text} is not a number of partitions", fix=f"give 1 to {MAX_PARTITIONS}")
        if name == BATCH_SETTING and not SECONDS.fullmatch(value):
            raise wrong_usage(reason=f"--conf {text} is not a time", fix="give seconds, more than 0, e.g. 60")
        found[name] = value
    return found


def sockets_of(texts: list[str], master: str) -> dict[str, Path]:
    """Return the sockets of the workers that `--attach` names.

    Raises:
        RunError: R608.

    Example:
        >>> sockets_of(["main=unix:///run/worker.sock"], "local[2]")
        {'main': PosixPath('/run/worker.sock')}
    """
    found = {}
    for text in texts:
        name, equals, target = text.partition("=")
        path = Path(target.removeprefix(UNIX))
        if not (name and equals and target.startswith(UNIX) and path.is_absolute()):
            reason = f"--attach {text} names no worker and its socket"
            raise wrong_usage(reason=reason, fix="give NAME=unix:///PATH, e.g. main=unix:///tmp/worker.sock")
        if name in found:
            raise wrong_usage(reason=f"--attach: worker {name} is named twice", fix="name it once")
        found[name] = path
    from wallaroo_runtime.spark.machine.master import cores  # late: as the engines

    if found and cores(master) is None:
        reason = f"--attach: tasks of the Spark master {master} run on other machines"
        raise wrong_usage(reason=reason, fix="leave out --master, or give local[N]")
    return found


def location_of(arguments: argparse.Namespace) -> str:
    """Return the checkpoint, when it is at a URL; else an empty text."""
    place = arguments.checkpoint or ""
    return place if URL.match(place) else ""


def run(arguments: argparse.Namespace) -> int:
    """Run the application; returns when it has been stopped or is idle, or a signal has broken off its start."""
    app = app_of(arguments, "wallaroo run")
    idle = arguments.stop_when_idle
    if idle is not None and not 0 <= idle <= MAX_IDLE_S:
        raise wrong_usage(reason=f"--stop-when-idle {idle:g} is not a time", fix="give seconds, e.g. 10")
    if arguments.fresh and arguments.continue_goka:
        reason = "--fresh would count again what an earlier run has counted: Goka's offsets stay where they were"
        raise wrong_usage(reason=reason, fix="leave out one of the two; --continue-goka is for a new checkpoint")
    if arguments.continue_goka and arguments.mode == "realtime":
        reason = "--continue-goka begins a checkpoint of micro-batches"
        place = shlex.quote(arguments.checkpoint or app)
        fix = f"run it once without --mode, then `wallaroo state convert {place} --to realtime`"
        raise wrong_usage(reason=reason, fix=fix)
    if arguments.topic_reset == "end" and arguments.mode != "realtime":
        reason = "--topic-reset end is for --mode realtime: in micro-batches Spark keeps the offsets"
        raise wrong_usage(reason=reason, fix="--topic-reset start goes on with the records that are there")
    if arguments.debug:
        refuse_together("--debug", {"--json": arguments.json and "the terminal is the debugger's"})
        arguments.engine = "memory"
    if arguments.check_persist and arguments.engine != "memory":
        raise wrong_usage(reason="--check-persist is for --engine memory", fix="add --engine memory, or leave it out")
    tell_split(arguments.parts)
    if arguments.watch:
        from wallaroo_runtime.cli.watch import check_watch

        check_watch(arguments)
    reporter = JsonReporter() if arguments.json else TextReporter(is_quiet=arguments.quiet, is_shared=arguments.debug)
    with closing(reporter):
        return _run(arguments, app, reporter)


def _run(arguments: argparse.Namespace, app: str, reporter: JsonReporter | TextReporter) -> int:
    """Run the application on the engine that was asked for."""
    # Late: each engine imports much.
    if arguments.engine == "memory":
        with signals_kill():
            from wallaroo_runtime.cli.memory import run_in_memory

        return run_in_memory(arguments, app, reporter)
    with signals_kill():
        from wallaroo_runtime.run.options import AppOptions, CheckpointOptions, RunOptions, SparkOptions
        from wallaroo_runtime.run.reload import execute_watched
        from wallaroo_runtime.run.run import execute

    location = location_of(arguments)
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
            conf=conf_of(arguments.conf),
            worker_python=arguments.worker_python,
        ),
        bounds=bounds_of(arguments),
        remote=remote_of(arguments),
        on_error=arguments.on_error,
        stop_when_idle=arguments.stop_when_idle,
        mode=arguments.mode,
        monitor=monitor_of(arguments),
    )
    return execute_watched(options, reporter) if arguments.watch else execute(options, reporter)
