"""`wallaroo explain FILE|APP|CODE`: show the stages of an application, or the meaning of a finding's code."""

import argparse
import re
from collections.abc import Mapping
from typing import Any

from wallaroo.diagnostic.diagnostic import Kind, catalogue, kind_of
from wallaroo_runtime.cli.document import WHAT, add_app_options, read_topology, split_document
from wallaroo_runtime.cli.parser import usage_error
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.explain import explain
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.plan.realtime import in_realtime
from wallaroo_runtime.spark.machine.master import cluster_of, shuffle_partitions

CODE = re.compile(r"[A-Za-z][0-9]{3}\Z")
KINDS = {
    "T1": "the form of a topology",
    "T2": "the meaning of a program or topology",
    "P3": "what cannot be compiled",
    "W4": "a worker",
    "C5": "user code; the message becomes a dead letter, unless its policy says otherwise",
    "R6": "a run or a command",
    "R7": "a run or a command",
    "R8": "a run or a command",
    "I9": "a bug of ours",
}
ENDS_RUN = "user code; the run ends, and goes on when that is corrected"
REALTIME, INDENT = "in real-time mode (--mode realtime)", "\n  "
PART = re.compile(r"\{(\w+)[^}]*\}")

split_arguments = split_document


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser(
        "explain", help="show the stages and Spark's work, or the meaning of a code", description=__doc__
    )
    parser.add_argument("file", metavar="FILE|APP|CODE", help=f"{WHAT}; or the code of a finding, e.g. R714")
    parser.add_argument("--master", default="local[*]", metavar="URL", help="Spark master that it would run on")
    parser.add_argument("--mode", choices=("microbatch", "realtime"), help="only what this mode does; default: both")
    add_app_options(parser)
    parser.add_argument(
        "--json", action="store_true", help="plan, or a code's entry, as a JSON object; findings as an array"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the plan of an application, or the catalogue's text about an error code."""
    if CODE.match(arguments.file):
        entry = _entry(arguments.file.upper())
        print_json(entry) if arguments.json else print(meaning(entry["code"]))
        return 0
    topology = read_topology(arguments.file, arguments)
    plan = compile_topology(topology, shuffle_partitions=shuffle_partitions(arguments.master))
    realtime = in_realtime(plan, topology, cluster=cluster_of(arguments.master))
    if arguments.json:
        print_json(_plan_json(plan, realtime))
        return 0
    texts = {"microbatch": explain(plan, topology), "realtime": f"{REALTIME}\n  {INDENT.join(realtime)}\n"}
    print("\n".join(text for mode, text in texts.items() if arguments.mode in (None, mode)), end="")
    return 0


def _plan_json(plan: Plan, realtime: list[str]) -> dict[str, Any]:
    stages = [
        {
            "id": stage.id,
            "level": level,
            "worker": stage.worker,
            "nodes": [{"kind": node.kind.name.lower(), "path": node.path} for node in stage.nodes],
        }
        for level, level_stages in enumerate(plan.levels)
        for stage in level_stages
    ]
    numbers = {"shuffle_partitions": plan.shuffle_partitions, "buckets": plan.bucket_count}
    return {"application": plan.application, **numbers, "stages": stages, "realtime": realtime}


def _entry(code: str) -> Mapping[str, Any]:
    """Return the entry of a code in the error catalogue.

    Raises:
        RunError: R608 if there is no such code.
    """
    entry = catalogue().get(code)
    if entry is None:
        reason = f"{code} is no code of the error catalogue"
        raise usage_error(reason, code, catalogue(), "", "wallaroo explain")
    return entry


def meaning(code: str) -> str:
    """Return the text of the error catalogue about a code.

    Raises:
        RunError: R608 if there is no such code.

    Example:
        >>> print(meaning("T203"))
        T203 duplicate: about the meaning of a program or topology
          <what> is declared twice
          fix: remove one of the two, or give it another <kind>
    """
    entry = _entry(code)
    about = ENDS_RUN if kind_of(code) is Kind.ENDS_RUN else KINDS[code[:2]]
    lines = [f"{code} {entry['name']}: about {about}", f"  {_filled(entry['message'])}"]
    lines += [f"  cause: {cause}" for cause in entry.get("causes", ())]
    fix = _filled(entry["fix"])
    return "\n".join([*lines, f"  fix: {'the finding has it' if fix == '<fix>' else fix}"])


def _filled(text: str) -> str:
    """Return a text of the error catalogue in which each placeholder `{name}` is written as `<name>`."""
    return PART.sub(r"<\1>", text).replace("{{", "{").replace("}}", "}")
