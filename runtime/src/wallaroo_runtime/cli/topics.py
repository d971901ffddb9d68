"""`wallaroo topics`: list, make and describe topics of Kafka, show their records, and write some.

`tail` shows each record as PARTITION/OFFSET KEY VALUE HEADER=VALUE, with - for no key or value. A tombstone is a record
without a value, which deletes its key from a compacted topic. `emit` writes one record, or one for each line of stdin:
KEY, a tab, VALUE, or a value alone.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from wallaroo.message.kafka_record import KafkaRecord
from wallaroo_runtime.case.record_line import record_line
from wallaroo_runtime.cli.parser import Parser, whole, wrong_usage
from wallaroo_runtime.console.json_line import print_json, print_result
from wallaroo_runtime.console.table import number, print_table, text
from wallaroo_runtime.errors import count
from wallaroo_runtime.kafka.client import Cluster
from wallaroo_runtime.kafka.record import PARTITIONERS, emit, follow, record_json
from wallaroo_runtime.kafka.topic import MAX_PARTITIONS, Topic, create_topic, describe_topic, list_topics
from wallaroo_runtime.system.stop import stop_event
from wallaroo_runtime.topology.override import BROKERS as VARIABLE
from wallaroo_runtime.topology.override import parse_brokers
from wallaroo_runtime.topology.secret import resolved

BROKERS = "127.0.0.1:9092"
MAX_PARTITION = 1_000_000_000
COLUMNS = (text("topic", 40, 16), number("partitions", 10), number("records", 14), text("settings"))
PARTITION_COLUMNS = (number("partition", 9), number("leader", 8), number("first offset", 14), number("next offset", 14))


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("topics", help="make, show and fill topics of Kafka", description=__doc__)
    actions = parser.add_subparsers(
        dest="action", metavar="ls|create|describe|tail|emit", parser_class=Parser, required=True
    )
    helps = {
        "ls": "list topics",
        "create": "make a topic",
        "describe": "show a topic's partitions and settings",
        "tail": "show records as they come; Ctrl-C ends it",
        "emit": "write records: KEY VALUE, VALUE, or the lines of stdin",
    }
    parsers = {name: actions.add_parser(name, help=text, description=text) for name, text in helps.items()}
    for name, action in parsers.items():
        if name != "ls":
            action.add_argument("topic", metavar="TOPIC")
    parsers["ls"].add_argument("--all", action="store_true", help="also Kafka's internal topics")
    _add_create(parsers["create"].add_argument)
    _add_tail(parsers["tail"].add_argument)
    _add_emit(parsers["emit"].add_argument)
    for each in (parser, *parsers.values()):  # the option may stand before or after the action
        absent = {} if each is parser else {"default": argparse.SUPPRESS}
        add = each.add_argument
        what = f"of the cluster; default: {VARIABLE} in the environment, or {BROKERS}"
        add("--brokers", **{"default": "", **absent}, metavar="H:P,...", help=what)
        _add_settings(add, "--client", "a setting of the client, e.g. security.protocol=SSL", **absent)
        add("--json", action="store_true", **absent, help="JSON objects, one a line; findings as a JSON array")


def _add_settings(add: Any, name: str, what: str, default: Any = ()) -> None:
    add(name, type=_setting, action="append", default=default or [], metavar="NAME=VALUE", help=what)


def _add_create(add: Any) -> None:
    add("--partitions", type=whole(1, MAX_PARTITIONS), default=1, metavar="N", help="default: %(default)s")
    add(
        "--replicas",
        type=whole(1, MAX_PARTITIONS),
        default=1,
        metavar="N",
        help="copies of each partition; default: %(default)s",
    )
    add("--compact", action="store_true", help="keep the last record of each key, as for a table")
    _add_settings(add, "--config", "a setting of the topic, e.g. retention.ms=3600000")


def _add_tail(add: Any) -> None:
    add("--from-beginning", action="store_true", help="begin with the first records instead of new ones")
    add("--to-end", action="store_true", help="end where the topic ends; implies --from-beginning")
    add("-n", "--number", type=whole(1), metavar="N", help="end after N records")
    add(
        "--partition",
        type=whole(0, MAX_PARTITION),
        action="append",
        default=[],
        metavar="P",
        help="only this partition",
    )


def _add_emit(add: Any) -> None:
    add("texts", nargs="*", metavar="KEY VALUE", help="or VALUE alone; default: lines of stdin")
    add("--tombstone", metavar="KEY", help="write a record of this key without a value")
    add("--header", type=_setting, action="append", default=[], metavar="NAME=VALUE", help="a header of each record")
    chosen = "murmur2: as Kafka's own clients, default; fnv1a: as Goka"
    add("--partitioner", choices=sorted(PARTITIONERS), default="murmur2", help=chosen)
    add("--partition", type=whole(0, MAX_PARTITION), metavar="P", help="write to this partition")


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not name or not sign:
        reason = f"{text!r} is not NAME=VALUE"
        raise argparse.ArgumentTypeError(reason)
    return name, value


def run(arguments: argparse.Namespace) -> int:
    """Run the action that the command line names."""
    cluster = Cluster(_brokers(arguments.brokers), resolved(dict(arguments.client)))
    actions = {"ls": _list, "create": _create, "describe": _describe, "tail": _tail, "emit": _emit}
    actions[arguments.action](cluster, arguments)
    return 0


def _brokers(chosen: str) -> list[str]:
    """Return the brokers of the option `--brokers`, else those of the environment variable, else of this machine."""
    if chosen:
        return parse_brokers("--brokers", chosen)
    return parse_brokers(VARIABLE, os.environ.get(VARIABLE) or BROKERS)


def _as_json(topic: Topic) -> dict[str, Any]:
    names = ("number", "leader", "begin", "end")
    partitions = [{name: getattr(partition, name) for name in names} for partition in topic.partitions]
    return {"topic": topic.name, "partitions": partitions, "settings": dict(topic.settings)}


def _list(cluster: Cluster, arguments: argparse.Namespace) -> None:
    listed = list_topics(cluster, internal=arguments.all)
    if arguments.json:
        for topic in listed:
            print_json(_as_json(topic))
        return
    rows = []
    for topic in listed:
        settings = " ".join(f"{name}={value}" for name, value in topic.settings.items())
        rows.append((topic.name, str(len(topic.partitions)), f"{topic.records:,}", settings))
    print_table(COLUMNS, rows)


def _create(cluster: Cluster, arguments: argparse.Namespace) -> None:
    settings = ({"cleanup.policy": "compact"} if arguments.compact else {}) | dict(arguments.config)
    create_topic(cluster, arguments.topic, arguments.partitions, arguments.replicas, settings)
    if arguments.json:
        print_json(_as_json(describe_topic(cluster, arguments.topic)))
    else:
        print(f'topic "{arguments.topic}" created, {count(arguments.partitions, "partition")}')


def _describe(cluster: Cluster, arguments: argparse.Namespace) -> None:
    topic = describe_topic(cluster, arguments.topic)
    if arguments.json:
        print_json(_as_json(topic))
        return
    print(f"topic {topic.name}")
    for name, value in topic.settings.items():
        print(f"  {name}={value}")
    rows = [tuple(map(str, (part.number, part.leader, part.begin, part.end))) for part in topic.partitions]
    print_table(PARTITION_COLUMNS, rows)


def _tail(cluster: Cluster, arguments: argparse.Namespace) -> None:
    stopped = stop_event()

    def ready() -> None:
        if not arguments.to_end:
            print(f"following {arguments.topic}; Ctrl-C ends it", file=sys.stderr, flush=True)

    records = follow(
        cluster,
        arguments.topic,
        from_beginning=arguments.from_beginning or arguments.to_end,
        to_end=arguments.to_end,
        partitions=arguments.partition,
        is_stopped=stopped.is_set,
        ready=ready,
    )
    for record in islice(records, arguments.number):
        line = record_line(replace(record, topic=f"{record.partition}/{record.offset}"))
        print_result(record_json(record), line, as_json=arguments.json)


def _emit(cluster: Cluster, arguments: argparse.Namespace) -> None:
    counts = emit(
        cluster,
        arguments.topic,
        _given(arguments),
        partitioner=arguments.partitioner,
        partition=arguments.partition,
    )
    total = sum(counts.values())
    partitions = [{"number": number, "records": counts[number]} for number in sorted(counts)]
    values = {"topic": arguments.topic, "records": total, "partitions": partitions}
    print_result(values, f"{count(total, 'record')} written to {arguments.topic}", as_json=arguments.json)


def _given(arguments: argparse.Namespace) -> Iterable[KafkaRecord]:
    """Return the records to write, from the command line or from stdin."""
    texts, headers = arguments.texts, tuple((name, value.encode()) for name, value in arguments.header)
    if len(texts) > 2 or (texts and arguments.tombstone is not None):
        reason, fix = (
            "too many arguments",
            "give KEY VALUE, VALUE alone, --tombstone KEY, or nothing but lines on stdin",
        )
        raise wrong_usage(reason=reason, fix=fix)
    if arguments.tombstone is not None:
        return [KafkaRecord(key=_octets(arguments.tombstone), headers=headers)]
    if texts:
        key = _octets(texts[0]) if len(texts) == 2 else None
        return [KafkaRecord(key=key, value=_octets(texts[-1]), headers=headers)]
    return _lines(headers)


def _octets(text: str) -> bytes:
    """Return the bytes of a command-line argument as the shell passed them, even if they are not Unicode."""
    return text.encode("utf-8", "surrogateescape")


def _lines(headers: tuple[tuple[str, bytes], ...]) -> Iterator[KafkaRecord]:
    for line in sys.stdin.buffer:
        first, sign, rest = line.rstrip(b"\r\n").partition(b"\t")
        yield KafkaRecord(key=first if sign else None, value=rest if sign else first, headers=headers)
