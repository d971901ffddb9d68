"""`wallaroo explain FILE`: show the stages of a topology and how Spark runs them."""

import argparse
from typing import Any

from wallaroo_runtime.cli.document import read_topology
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.explain import explain
from wallaroo_runtime.spark.master import shuffle_partitions


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("explain", help="show the stages and what Spark runs", description=__doc__)
    parser.add_argument("file", metavar="FILE", help="topology as `wallaroo emit` prints it; - reads stdin")
    parser.add_argument("--master", default="local[*]", metavar="URL", help="Spark master that it would run on")
    parser.add_argument("--json", action="store_true", help="write findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    topology = read_topology(arguments.file)
    plan = compile_topology(topology, shuffle_partitions=shuffle_partitions(arguments.master))
    print(explain(plan, topology), end="")
    return 0
