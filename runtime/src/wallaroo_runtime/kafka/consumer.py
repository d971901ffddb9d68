"""Configures the Kafka client with which a gateway reads a topic into the journal."""

from collections.abc import Callable, Mapping
from typing import Any

from wallaroo.message.kafka_record import PREFIX
from wallaroo_runtime.kafka.client import MOST_RECEIVED, kafka_client, option_refused

# Settings of Kafka's Java client, which reads in micro-batches, with those of this client; empty if it has none.
RENAMED = {"fetch.max.wait.ms": "fetch.wait.max.ms", "max.poll.records": "", "default.api.timeout.ms": ""}
DEFAULTS: dict[str, Any] = {
    "queued.max.messages.kbytes": 16 * 1024,
    "fetch.queue.backoff.ms": 10,  # time until a full queue is filled again; 1000 by default
    "reconnect.backoff.max.ms": 1000,
    "topic.metadata.refresh.interval.ms": 5000,
    "receive.message.max.bytes": MOST_RECEIVED,
    "log_level": 0,  # the log on stderr repeats the client's errors
}
OWN: dict[str, Any] = {
    "enable.auto.commit": False,  # the journal records how far it has read
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}


def consumer_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of librdkafka for the options of a source. Records of aborted transactions are left out.

    Args:
        options: Options of the source. Those without `kafka.` are for Spark, which does not read in real-time mode.

    Example:
        >>> consumer_settings({"kafka.fetch.max.wait.ms": "9", "kafka.max.poll.records": "5"})
        {'isolation.level': 'read_committed', 'fetch.wait.max.ms': '9'}
    """
    settings = {"isolation.level": "read_committed"}
    for option, value in sorted(options.items()):
        name = option.removeprefix(PREFIX)
        if name != option and (name := RENAMED.get(name, name)):
            settings[name] = value
    return settings


def make_consumer(
    brokers: str, settings: Mapping[str, str], source: str, failed: Callable[[Any], None] = lambda error: None
) -> Any:
    """Return the consumer of a source. The gateway assigns partitions to it; no consumer group divides them.

    Raises:
        RunError: R716 if the client does not know a setting; R728 if the client is not installed.
    """
    client = kafka_client(f'source "{source}" in real-time mode')
    own = {"bootstrap.servers": brokers, "group.id": f"wallaroo-{source}", "error_cb": failed, **OWN}
    try:
        return client.Consumer({**DEFAULTS, **settings, **own})
    except (client.KafkaException, TypeError, ValueError) as error:
        part, use = f'source "{source}"', "in real-time mode, confluent_kafka reads"
        raise option_refused(part, use, error) from error
