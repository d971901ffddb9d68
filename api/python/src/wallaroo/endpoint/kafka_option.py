"""Command line options for Kafka topics, as in Wallaroo."""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.diagnostic.location import called_from

DEFAULT_PORT = "9092"
_HOST = r"(\[[^][,]+\]|[^][,:]+)(?::([0-9]{1,5}))?"  # an IPv6 address is in brackets
_OFFSET = r"(START|END|0|-?[1-9][0-9]*)"


class _Kind(NamedTuple):
    """The form of an option's values: as text for errors, an example, and a regular expression."""

    expected: str
    example: str
    pattern: str


_TEXT = _Kind("a text", "TEXT", r".+")
_NUMBER = _Kind("a number", "1000", r"0|[1-9][0-9]*")
_LEVEL = _Kind("Fine, Info, Warn or Error", "Warn", r"Fine|Info|Warn|Error")
_ACKS = _Kind("-1, 0 or 1", "-1", r"-1|0|1")
_PACKER = _Kind("gzip, snappy, lz4 or none", "lz4", r"gzip|snappy|lz4|none")
_START = _Kind("START, END or a number", "START", _OFFSET)
_HOSTS = _Kind("HOST:PORT,...", "127.0.0.1:9092", rf"{_HOST}(,{_HOST})*")
_PARTS = _Kind("NUMBER or NUMBER:OFFSET, ...", "0,1:END", rf"[0-9]{{1,9}}(:{_OFFSET})?(,[0-9]{{1,9}}(:{_OFFSET})?)*")

_FETCH_WAIT, LINGER, MESSAGE_SIZE = "kafka.fetch.max.wait.ms", "kafka.linger.ms", "kafka.max.request.size"
_COMMON = {"topic": (_TEXT, ""), "brokers": (_HOSTS, ""), "log_level": (_LEVEL, "")}
# Name of the option: syntax of its values, and the corresponding setting of Kafka's client.
_FETCHING = {
    "fetch_interval": (_NUMBER, _FETCH_WAIT),
    "min_fetch_bytes": (_NUMBER, "kafka.fetch.min.bytes"),
    "max_fetch_bytes": (_NUMBER, "kafka.fetch.max.bytes"),
    "partition_fetch_max_bytes": (_NUMBER, "kafka.max.partition.fetch.bytes"),
    "offset_default": (_START, ""),
}
_SOURCE = {
    **_COMMON,
    "partitions": (_PARTS, ""),
    **_FETCHING,
    **{f"consumer_{name}": _FETCHING[name] for name in _FETCHING},
}
_SINK = {
    **_COMMON,
    "produce_timeout_ms": (_NUMBER, "kafka.request.timeout.ms"),
    "max_produce_buffer_ms": (_NUMBER, LINGER),
    "max_produce_message_size": (_NUMBER, MESSAGE_SIZE),
    "max_message_size": (_NUMBER, MESSAGE_SIZE),
    "max_inflight_requests": (_NUMBER, "kafka.max.in.flight.requests.per.connection"),
    "produce_acks": (_ACKS, "kafka.acks"),
    "producer_compression": (_PACKER, "kafka.compression.type"),
}


@dataclass(slots=True)
class TopicOptions:
    """A Kafka topic, and how to read or write it, as the command line options describe it.

    Attributes:
        start: Where reading begins, as in the topology document.
        partitions: Partitions to read, as in the topology document; empty for all.
        options: Settings of Kafka's client.
        exactly_once: Whether a sink writes in transactions.
        findings: Faults of the options.
    """

    topic: str = ""
    brokers: list[tuple[str, str]] = field(default_factory=list)
    log_level: str = "Warn"
    start: str = "start"
    partitions: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    exactly_once: bool = False
    findings: list[Diagnostic] = field(default_factory=list)


def source_topic(name: str, args: Sequence[str]) -> TopicOptions:
    """Read the options `--NAME_topic`, `--NAME_brokers` and so on of a source."""
    values, topic = _read("source", name, args, _SOURCE)
    topic.start = values.get("consumer_offset_default", values.get("offset_default", "START")).lower()
    for item in filter(None, values.get("partitions", "").split(",")):
        number, _, start = item.partition(":")
        topic.partitions.append({"number": int(number)} | ({"start": start.lower()} if start else {}))
    if f"--{name}_consumer_check_crc" in args:
        topic.options["kafka.check.crcs"] = "true"
    return topic


def sink_topic(name: str, args: Sequence[str]) -> TopicOptions:
    """Read the options `--NAME_topic`, `--NAME_brokers` and so on of a sink."""
    topic = _read("sink", name, args, _SINK)[1]
    topic.exactly_once = f"--{name}_exactly_once" in args
    return topic


def kafka_parse_source_options(args: Sequence[str]) -> tuple[str, list[tuple[str, str]], str]:
    """Return topic, brokers and log level of the options `--kafka_source_topic`, `_brokers` and `_log_level`.

    Args:
        args: The arguments of `application_setup`; other options in it are ignored.

    Raises:
        WallarooParameterError: T240 if topic or brokers are missing, or a value is not valid.

    Example:
        >>> kafka_parse_source_options(["--kafka_source_topic", "in", "--kafka_source_brokers", "127.0.0.1"])
        ('in', [('127.0.0.1', '9092')], 'Warn')

    Source: Wallaroo 0.1 to 0.4.
    """
    topic = _checked(source_topic, "kafka_source", args)
    return topic.topic, topic.brokers, topic.log_level


def kafka_parse_sink_options(args: Sequence[str]) -> tuple[str, list[tuple[str, str]], str, int, int]:
    """Return topic, brokers, log level, longest wait (ms) and largest message (bytes) of the options of a sink.

    The options are `--kafka_sink_topic`, `_brokers`, `_log_level`, `_max_produce_buffer_ms` and `_max_message_size`.

    Args:
        args: The arguments of `application_setup`; other options in it are ignored.

    Raises:
        WallarooParameterError: T240 if topic or brokers are missing, or a value is not valid.

    Example:
        >>> kafka_parse_sink_options(["--kafka_sink_topic", "out", "--kafka_sink_brokers", "h:1234"])
        ('out', [('h', '1234')], 'Warn', 0, 100000)

    Source: Wallaroo 0.1 to 0.4.
    """
    topic = _checked(sink_topic, "kafka_sink", args)
    wait, size = topic.options.get(LINGER, "0"), topic.options.get(MESSAGE_SIZE, "100000")
    return topic.topic, topic.brokers, topic.log_level, int(wait), int(size)


def _checked(read: Callable[[str, Sequence[str]], TopicOptions], name: str, args: Sequence[str]) -> TopicOptions:
    topic = read(name, args)
    if topic.findings:
        raise WallarooParameterError(topic.findings)
    return topic


def _read(
    what: str, name: str, args: Sequence[str], options: dict[str, tuple[_Kind, str]]
) -> tuple[dict[str, str], TopicOptions]:
    values, topic = {}, TopicOptions()
    for option, (kind, setting) in options.items():
        flag = f"--{name}_{option}"
        value = _last(args, flag)
        if value is None and option not in ("topic", "brokers"):
            continue
        if value is None or not re.fullmatch(kind.pattern, value):
            actual = "missing" if value is None else shown(value)
            topic.findings.append(
                Diagnostic.of(
                    "T240", **called_from().shown()._asdict(), what=what, name=name, option=flag, actual=actual,
                    expected=kind.expected, example=kind.example,
                )
            )  # fmt: skip
            continue
        values[option] = value
        if setting:
            # The option of Wallaroo is in nanoseconds, Kafka's setting in milliseconds.
            topic.options[setting] = str(int(value) // 1_000_000) if setting == _FETCH_WAIT else value
    if "log_level" in values:
        warnings.warn(f"--{name}_log_level has no effect: Spark's log settings count", stacklevel=2)
    topic.topic, topic.log_level = values.get("topic", ""), values.get("log_level", "Warn")
    addresses = re.findall(_HOST, values.get("brokers", ""))
    topic.brokers = [(host.strip("[]"), port or DEFAULT_PORT) for host, port in addresses]
    return values, topic


def _last(args: Sequence[str], flag: str) -> str | None:
    """Return the last value of `--FLAG VALUE` or `--FLAG=VALUE`."""
    last = None
    for position, argument in enumerate(args):
        if argument.startswith(f"{flag}="):
            last = argument[len(flag) + 1 :]
        elif argument == flag and position + 1 < len(args):
            last = args[position + 1]
    return last
