"""`wallaroo broker`: run a real Apache Kafka on this machine, one node, for development and tests.

Maven fetches Kafka's jars the first time. Topics stay in the data directory between runs. Ctrl-C or SIGTERM end the
broker in order. `wallaroo topics` makes and shows topics.
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.checkpoint.registry import state_directory
from wallaroo_runtime.console.json_line import print_result, report
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.broker import VERSION, Broker
from wallaroo_runtime.service.credential import is_loopback
from wallaroo_runtime.spark.machine.java import check_java
from wallaroo_runtime.system.maven import Waiting
from wallaroo_runtime.system.stop import SIGNALLED, stop_event
from wallaroo_runtime.topology.override import parse_address

LISTEN = "127.0.0.1:9092"
LOOK_S = 0.2


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("broker", help="run a Kafka broker on this machine", description=__doc__)
    add = parser.add_argument
    add("--data", metavar="DIR", help="directory of topics; default: in ~/.local/state/wallaroo")
    add("--listen", default=LISTEN, metavar="H:P", help="where clients reach it; port 0: any; default: %(default)s")
    add("--auto-create-topics", action="store_true", help="create each topic that a client names")
    add("--json", action="store_true", help="print the address as JSON; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Run a broker until a signal stops it.

    Raises:
        RunError: The broker cannot start, or has ended by itself.
    """
    stopped = stop_event()
    check_java()
    host, port = parse_address("--listen", arguments.listen)
    directory = Path(arguments.data) if arguments.data else state_directory() / "broker"
    settings = {"auto.create.topics.enable": "true"} if arguments.auto_create_topics else {}
    broker = Broker(directory, host, port, settings)
    try:
        broker.start(Waiting(partial(tell_fetching, as_json=arguments.json), stopped.is_set))
    except RunError:
        if not stopped.is_set():
            raise
        if not arguments.json:
            print("stopped before it was ready", file=sys.stderr)
        return SIGNALLED + stopped.number
    try:
        tell(broker, is_open=not is_loopback(host), as_json=arguments.json)
        while not stopped.is_set():
            if broker.wait(LOOK_S):
                raise broker.failure(reason="it ended by itself")
    finally:
        broker.stop()
    if not arguments.json:
        print("broker stopped; its topics stay", file=sys.stderr)
    return 0


def tell_fetching(*, as_json: bool) -> None:
    """Report to the user that Maven now fetches Kafka, which takes about a minute."""
    text = f"fetching Kafka {VERSION} with Maven, once for this user; it takes about a minute"
    print_result({"state": "starting", "doing": text}, text, as_json=as_json, stream=sys.stderr)


def tell(broker: Broker, *, is_open: bool, as_json: bool) -> None:
    """Print the address of a broker, and warn if other machines can reach it."""
    if is_open:
        finding = Diagnostic.of(
            "R713",
            what="the broker",
            address=broker.address,
            deed="read and write its topics",
            fix="listen at 127.0.0.1",
        )
        report([finding], as_json)
    values = {"state": "serving", "address": broker.address, "data": str(broker.directory)}
    text = f"broker serves at {broker.address}; its topics are in {broker.directory}; Ctrl-C stops it"
    print_result(values, text, as_json=as_json)
