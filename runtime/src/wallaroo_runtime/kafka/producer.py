"""Makes the settings of the Kafka client with which an egress writes a topic."""

from collections.abc import Iterable, Mapping
from typing import Any

from wallaroo.message.kafka_record import CONNECTING, PREFIX

DEFAULTS: dict[str, Any] = {
    "partitioner": "murmur2_random",
    "topic.metadata.propagation.max.ms": 3000,  # milliseconds until a missing topic is reported; 30,000 by default
}
# Settings of every sink. A write of the egress ends with a flush, which sends at once all records that still wait. So a
# long `linger.ms` delays nothing, and many records go to the broker in few batches, which cost it less CPU time.
FIXED: dict[str, Any] = {"linger.ms": 100, "delivery.report.only.error": True}
# Settings by their names in Kafka's Java client, which Spark's sink uses, with their names in this client.
LIMIT = "message.max.bytes"
RENAMED = {"max.request.size": LIMIT}
# If one of these settings is made, the client no longer keeps the order by itself.
_UNORDERED = ("max.in.flight", "max.in.flight.requests.per.connection", "message.send.max.retries", "retries")


def producer_settings(brokers: Iterable[str], options: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of librdkafka for the options of a Kafka sink.

    Args:
        brokers: HOST:PORT of some brokers.
        options: Options of the sink.

    Example:
        >>> producer_settings(["k:9092"], {"kafka.max.request.size": "9000"})
        {'bootstrap.servers': 'k:9092', 'log_level': 0, 'message.max.bytes': '9000'}
    """
    settings: dict[str, Any] = {"bootstrap.servers": ",".join(brokers), "log_level": 0}
    names = ((option.removeprefix(PREFIX), value) for option, value in sorted(options.items()))
    return settings | {RENAMED.get(name, name): value for name, value in names}


def keeps_order(settings: Mapping[str, Any]) -> bool:
    """Return whether the settings permit an idempotent producer, whose retries neither repeat nor reorder records.

    Example:
        >>> keeps_order({"acks": "all"}), keeps_order({"acks": "1"}), keeps_order({"retries": "0"})
        (True, False, False)
    """
    acks = [str(settings[name]) for name in ("acks", "request.required.acks") if name in settings]
    return set(acks) <= {"all", "-1"} and not any(name in settings for name in _UNORDERED)


def reader_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a producer that a consumer also needs: addresses, login and encryption."""
    kinds = ("bootstrap.", "log_level", *CONNECTING)
    return {name: value for name, value in settings.items() if name.startswith(kinds)}
