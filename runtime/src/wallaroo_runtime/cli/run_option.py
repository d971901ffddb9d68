"""The options of `run`, each declared once, for parser, help, completion and the checks of engines."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wallaroo_runtime.cli.parser import amount
from wallaroo_runtime.monitor.access import LOOPBACK, OFF, parse_address

PROGRAM, ENDS, SPARK, CHECKPOINT, FAILURES, SERVICES, SHOWN = (
    "program", "sources and sinks", "Spark", "checkpoint", "failures", "remote gateways and egress",
    "what is shown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunOption:
    """An option of `run`.

    Attributes:
        names: Names of the option. Users see the first name.
        group: Heading in the help.
        what: Text of the help.
        settings: Further arguments for `add_argument`.
        of_spark: Whether the option has no meaning with `--engine memory`.
        is_submitted: Whether `submit` has the option, too.
        is_shown_to_app: Whether the application gets the option, too.
    """

    names: tuple[str, ...]
    group: str
    what: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    of_spark: bool = False
    is_submitted: bool = True
    is_shown_to_app: bool = False

    @property
    def takes_value(self) -> bool:
        """Whether a value follows the option."""
        return self.settings.get("action") != "store_true"

    @property
    def attribute(self) -> str:
        """The name of the attribute in which the parser stores the value."""
        return str(self.settings.get("dest") or self.names[0].lstrip("-").replace("-", "_"))


FLAG = {"action": "store_true"}


def stated(text: str) -> str:
    """Return the value of an option, but refuse an empty one, e.g. from a shell variable that is not set.

    Raises:
        ArgumentTypeError: The text is empty.
    """
    if not text.strip():
        message = "is empty"
        raise argparse.ArgumentTypeError(message)
    return text


def address_or_off(text: str) -> str:
    """Return the value of `--monitor`: an address, or OFF.

    Raises:
        ArgumentTypeError: The text is neither.
    """
    if text != OFF and not parse_address(text):
        message = f"{text!r} is no address; write HOST:PORT, :PORT or {OFF}"
        raise argparse.ArgumentTypeError(message)
    return text


OPTIONS = (
    RunOption(("--engine",), PROGRAM, "memory: a first look, in this process alone",
              {"choices": ["spark", "memory"], "default": "spark"}, is_submitted=False),
    RunOption(("--debug",), PROGRAM, "--engine memory, one message at a time: breakpoint() stops in this terminal, and "
              "changes of state that are not persisted are found; slow", FLAG, is_submitted=False),
    RunOption(("--watch",), PROGRAM, "load the program again when its files change; Spark stays warm", FLAG,
              is_submitted=False),
    RunOption(("--attach",), PROGRAM, "use a worker that is started already, e.g. under a debugger",
              {"action": "append", "default": [], "metavar": "NAME=unix:///PATH"}, of_spark=True, is_submitted=False),
    RunOption(("--stop-when-idle",), PROGRAM, "stop when no input came for SECONDS",
              {"type": amount("number of seconds", "10"), "metavar": "SECONDS"}),
    RunOption(("--available-now",), PROGRAM, "stop when all input present at the start is delivered",
              FLAG, of_spark=True),
    RunOption(("--in", "-i"), ENDS, "addresses at which sources listen",
              {"dest": "inputs", "default": "", "metavar": "[NAME@]H:P,..."}, is_shown_to_app=True),
    RunOption(("--out", "-o"), ENDS, "addresses to which sinks send",
              {"dest": "outputs", "default": "", "metavar": "[NAME@]H:P,..."}, is_shown_to_app=True),
    RunOption(("--continue-goka",), ENDS, "a new checkpoint begins with the tables and offsets that Goka's own "
              "processors left", FLAG, of_spark=True),
    RunOption(("--topic-reset",), ENDS, "where to read on if records are gone (R792) or a topic was created again "
              "(R738); end: real-time mode only", {"choices": ["start", "end"], "default": ""}, of_spark=True),
    RunOption(("--master",), SPARK, "Spark master; default: local[*], this machine",
              {"default": "local[*]", "metavar": "URL"}, of_spark=True),
    RunOption(("--mode",), SPARK, "realtime: millisecond latency; `explain` says if it qualifies; default: %(default)s",
              {"choices": ["microbatch", "realtime"], "default": "microbatch"}, of_spark=True),
    RunOption(("--conf",), SPARK, "a setting of Spark, or of the list below; may be repeated",
              {"action": "append", "default": [], "metavar": "NAME=VALUE"}, of_spark=True),
    RunOption(("--checkpoint",), CHECKPOINT, "default: a directory of the application in ~/.local/state/wallaroo",
              {"metavar": "DIR|URL", "type": stated}, of_spark=True),
    RunOption(("--fresh",), CHECKPOINT, "start over: empty the application's checkpoint", FLAG, of_spark=True),
    RunOption(("--on-error",), FAILURES, "policy for failing user code; a step's own policy wins",
              {"choices": ["dead_letter", "fail"], "default": ""}),
    RunOption(("--accept-changed",), FAILURES, "go on with a changed program that loses fields of states (R605) or "
              "repeats delivered results (R790)", FLAG, of_spark=True),
    RunOption(("--gateway",), SERVICES, "gateway of a source, or of all others",
              {"action": "append", "default": [], "metavar": "[NAME=]H:P"}, of_spark=True),
    RunOption(("--egress",), SERVICES, "egress; default: a local process, as for --gateway",
              {"default": "", "metavar": "H:P"}, of_spark=True),
    RunOption(("--monitor",), SHOWN, f"where the page, metrics and API listen; off: nowhere; default: {LOOPBACK}, a "
              "free port", {"metavar": "H:P|off", "type": address_or_off}, of_spark=True),
    RunOption(("--json",), SHOWN, "progress and findings as JSON", FLAG),
    RunOption(("--quiet",), SHOWN, "show no status line, and no output of the application's workers", FLAG,
              is_submitted=False),
)  # fmt: skip
OWN = {name: each.takes_value for each in OPTIONS if not each.is_shown_to_app for name in each.names}
VISIBLE = {name: each.takes_value for each in OPTIONS if each.is_shown_to_app for name in each.names}
SUBMIT = {"--deploy-mode": True, "--restart": True, "--dry-run": False}  # options that only `submit` has
ONLY_RUN = tuple(each.names[0] for each in OPTIONS if not each.is_submitted)


def add_options(parser: argparse.ArgumentParser, *, is_submitted: bool = False, group: str = "") -> None:
    """Declare options in a parser.

    Args:
        parser: Parser of a command.
        is_submitted: Whether to declare only options that `submit` has.
        group: Heading of the only group to declare; empty for all groups.
    """
    for heading in dict.fromkeys(each.group for each in OPTIONS if group in ("", each.group)):
        part = parser.add_argument_group(heading)
        for each in OPTIONS:
            if each.group == heading and (each.is_submitted or not is_submitted):
                part.add_argument(*each.names, help=each.what, **each.settings)


def without_meaning(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield the given options that have no meaning with `--engine memory`."""
    for each in OPTIONS:
        default = each.settings.get("default", None if each.takes_value else False)
        if each.of_spark and getattr(arguments, each.attribute) != default:
            yield each.names[0]
