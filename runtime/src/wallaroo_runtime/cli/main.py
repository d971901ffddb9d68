"""The entry point: finds the command, runs it, and turns every error into a diagnostic and an exit code."""

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo_runtime.checkpoint.registry import state_directory
from wallaroo_runtime.cli.exit_code import INTERRUPTED, exit_code
from wallaroo_runtime.cli.option import Split
from wallaroo_runtime.cli.parser import Parser, unknown_arguments
from wallaroo_runtime.console.json_line import report
from wallaroo_runtime.durable.file import disk_failure, path_failure
from wallaroo_runtime.errors import RUN, RunError

# Purpose, example and commands of each group. Each command has a module of its name in this package.
GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "develop an application",
        "wallaroo new python shop && wallaroo test shop",
        ("new", "test", "validate", "explain", "graph", "diff", "emit", "complete", "build"),
    ),
    (
        "run it on this machine",
        "wallaroo run shop/app.py",
        ("run", "stop", "send", "receive", "visit", "broker", "topics"),
    ),
    ("look at a run", "wallaroo status shop", ("status", "ps", "logs", "dead-letters", "state")),
    (
        "deploy it to a cluster",
        "wallaroo pack shop/app.py -o shop.tar.gz && wallaroo submit shop.tar.gz --master URL",
        ("pack", "submit", "gateway", "egress"),
    ),
    (
        "keep machines and checkpoints in order",
        "wallaroo backup shop shop.backup",
        ("doctor", "backup", "restore", "completion"),
    ),
)
COMMANDS = tuple(command for _, _, commands in GROUPS for command in commands)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `wallaroo` with its arguments.

    Args:
        argv: The arguments after the program's name; None for the arguments of this process.

    Returns:
        The exit code. It is 0, or 1 (run), 2 (usage), 3 (topology), 4 (worker), or 128 plus the number of a signal.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in arguments
    # gRPC reads these variables when it is imported. Its own log repeats our errors, with places in C++.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # gRPC's fork handlers start a thread in the child that becomes Spark's JVM. When Python closes the child's files,
    # this thread ends the child: with an open channel, 1 of 25 children did not start.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        try:
            code = dispatch(arguments)
        except SystemExit as error:  # argparse exits after --help and --version
            code = error.code if isinstance(error.code, int) else 0
        sys.stdout.flush()
        return code
    except DiagnosticError as error:
        report(error.pasted(arguments) if isinstance(error, RunError) else error.diagnostics, as_json)
        return exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has closed it, e.g. `| head`
        _drop_output()
        return RUN
    except Exception as error:
        _drop_output()
        failure = unforeseen(error)
        report(failure.diagnostics, as_json)
        return failure.exit_code


def _drop_output() -> None:
    """Discard output that stdout has refused. Else Python writes it again at its exit, and reports a second error."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def module_of(command: str) -> ModuleType:
    """Return the module of a command, which has the functions `add_parser` and `run`."""
    return import_module(f"wallaroo_runtime.cli.{command.replace('-', '_')}")


def command_parser(commands: Iterable[str] = COMMANDS) -> tuple[Parser, dict[str, Parser]]:
    """Return the parser of `wallaroo`, and the parser of each of the given subcommands.

    Args:
        commands: The subcommands to include.
    """
    usage = "wallaroo [-h] [--version] COMMAND ..."
    parser = Parser(prog="wallaroo", usage=usage, description="Runs Wallaroo applications on Apache Spark.")
    parser.add_argument("--version", action="version", version=f"wallaroo {version('wallaroo-spark-runtime')}")
    subparsers = parser.add_subparsers(
        prog="wallaroo", dest="command", metavar="COMMAND", help=argparse.SUPPRESS, parser_class=Parser, required=True
    )
    for command in commands:
        module_of(command).add_parser(subparsers)
    helps = {each.dest: each.help or "" for each in subparsers._get_subactions()}
    parser.epilog = "\n\n".join(
        _group_help(title, example, {command: helps[command] for command in names})
        for title, example, names in GROUPS
        if helps.keys() >= {*names}
    )
    return parser, subparsers.choices


def _group_help(title: str, example: str, helps: Mapping[str, str]) -> str:
    lines = (f"  {command:<14}{text}" for command, text in helps.items())
    return "\n".join((f"{title}, e.g. `{example}`", *lines))


def dispatch(argv: list[str]) -> int:
    """Parse the arguments, run the command that they name, and return its exit code."""
    named = argv[:1] if argv and argv[0] in COMMANDS else None  # other commands need not be imported
    parser, choices = command_parser(named or COMMANDS)
    parts = Split(own=argv)
    if named and hasattr(module_of(argv[0]), "split_arguments"):
        parts = module_of(argv[0]).split_arguments(argv[1:])
        parts.own.insert(0, argv[0])
    arguments, extras = parser.parse_known_args(parts.own)
    if extras:
        raise unknown_arguments(choices[arguments.command], extras)
    arguments.parts = parts
    code: int = module_of(arguments.command).run(arguments)
    return code


def unforeseen(error: Exception) -> RunError:
    """Return the findings for an error that no command has handled. Errors of paths, Spark and Java are translated.

    A missing PySpark is such an error, because many modules import it only for runs on Spark.
    """
    if isinstance(error, OSError):
        failure = disk_failure(error, error.filename or "output, checkpoint or caches") or path_failure(error)
        if failure:
            return failure
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in ("pyspark", "py4j"):
        from wallaroo_runtime.spark.machine.check import no_pyspark

        return RunError([no_pyspark(error)])
    finding, path = internal(error)
    if not type(error).__module__.startswith(("py4j.", "pyspark.")):
        return RunError([finding])
    from wallaroo_runtime.spark.failure.cause import causes_of
    from wallaroo_runtime.spark.failure.translate import translated

    return RunError(translated(causes_of(error), log=path).diagnostics)


def internal(error: Exception) -> tuple[Diagnostic, Path]:
    """Write the traceback of an unexpected error to a file. Return the finding, and the path of the file."""
    text = "".join(traceback.format_exception(error))
    summary = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    path = state_directory() / "crashes" / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.log"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError:
        try:
            descriptor, path_text = tempfile.mkstemp(prefix="wallaroo-", suffix=".log")
            path = Path(path_text)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as disk:
            at = traceback.extract_tb(error.__traceback__)[-1]
            origin = f"it is from {at.filename}:{at.lineno}; no disk takes its traceback: {disk.strerror or disk}"
            return Diagnostic.of("I901", reason=f"{summary}; {origin}"), path
    return Diagnostic.of("I901", reason=f"{summary}; the traceback is in {path}"), path
