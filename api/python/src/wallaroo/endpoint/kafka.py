"""Kafka sources and sinks: configured in the program (Wallaroo 0.1 to 0.4), or by command line options (0.5, 0.6)."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from wallaroo.check import check
from wallaroo.component.application import Source
from wallaroo.component.interface import Decoding, DecodingRecord, Encoding
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.error import Place
from wallaroo.endpoint.config import MAX_MESSAGE_BYTES, SinkConfig, SourceConfig, current_arguments, decode_of
from wallaroo.endpoint.kafka_check import check_options
from wallaroo.endpoint.kafka_option import LINGER, MESSAGE_SIZE, TopicOptions, sink_topic, source_topic
from wallaroo.endpoint.spark import option_texts
from wallaroo.message.kafka_record import component_of, content_of, create_of, table_of

Brokers = str | Sequence[str | tuple[str, str | int]]


class KafkaSourceConfig(SourceConfig):
    """A source that reads a Kafka topic. Messages have the keys and times of their records.

    Args:
        topic: Name of the topic.
        brokers: Addresses of some brokers, from which the client learns the others: "HOST:PORT,...", or a list of
            "HOST:PORT" or (host, port).
        log_level: Has no effect; programs of Wallaroo pass it.
        decoder: A function decorated with `@wallaroo.decoder`, or an object (or class) with `decode(bs)`, which gets a
            record's value. With content "record" it gets a `KafkaRecord`; if the decoder is None, the messages are
            these records.
        start: Where reading begins: "start", "end", an offset, or "-n": n records before the end.
        options: Settings of Kafka's client and of Spark's source, e.g. {"kafka.security.protocol": "SSL"}.
        name: Name of the source; None takes the pipeline's name.
        on_error: Policy if the decoder fails, as for `ApplicationBuilder`; None takes the application's policy.
        content: "record" for whole records with key, headers and so on, including tombstones, but without records of
            aborted transactions; None for only their values.
        table: Whether the topic is a table, in which the latest record of a key counts. Its records precede the other
            messages of a micro-batch, and the first micro-batch reads the whole topic. A table needs content "record"
            and start "start".
        create: How the topic is created before a run if it does not exist: {"like": TOPIC}, with the number of
            partitions of another topic, or {"partitions": NUMBER}; "replicas" and "options" are optional. None means
            that the topic must exist.

    Example:
        >>> import wallaroo
        >>> @wallaroo.decoder
        ... def decode(value):
        ...     return value.decode("utf-8")
        >>> source = KafkaSourceConfig("orders", "127.0.0.1:9092", decoder=decode, start="end", name="Orders")
        >>> source.name
        'Orders'

    Source: Wallaroo 0.1 to 0.4.
    """

    def __init__(
        self,
        topic: str,
        brokers: Brokers,
        log_level: str = "Warn",
        decoder: Decoding | DecodingRecord | None = None,
        *,
        start: str = "start",
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
        on_error: str | None = None,
        content: str | None = None,
        table: bool = False,
        create: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, on_error)
        self.decoder = component_of(decoder, content)
        self.content, self.table, self.create = content, table, deepcopy(create)
        self.topic_options = TopicOptions(topic, _pairs(brokers), log_level, start, options=dict(options or {}))

    def declare(self, place: Place, path: str, name: str, decoder: Any) -> Source | None:
        """Return the declared source, or report an error at `place` and return None."""
        fields = _fields(place, self.topic_options)
        if fields is None:
            return None
        options, start = fields.pop("options"), self.topic_options.start
        check_options(place, options, is_source=True)
        if not check.is_start(start):
            place.wrong("start", shown(start), '"start", "end", an offset, or "-n"', fix='pass e.g. "end"')
        partitions = {"partitions": self.topic_options.partitions} if self.topic_options.partitions else {}
        fields |= {"start": start, **partitions, "options": options}
        fields |= content_of(place, self.content) | table_of(place, self.table) | create_of(place, self.create)
        fields |= {"max_message_bytes": MAX_MESSAGE_BYTES}
        decode = decode_of(place, decoder)
        return decode and Source(path, name, "kafka", fields, decode, gives_time=True)


class KafkaSinkConfig(SinkConfig):
    """A sink that writes a Kafka topic.

    Args:
        topic: Name of the topic.
        brokers: As for `KafkaSourceConfig`.
        log_level: Has no effect; programs of Wallaroo pass it.
        max_produce_buffer_ms: How long the client may wait for more messages, in milliseconds. None: 5, and 0 in
            real-time mode.
        max_message_size: Largest record in bytes. None: as large as the topic accepts.
        encoder: A function decorated with `@wallaroo.encoder`, or an object (or class) with `encode(data)`. It returns
            the value, `(value, key)` or `(value, key, partition_id)`; a partition of None lets Kafka choose. With
            content "record" it returns a `KafkaRecord`, or None to send nothing; if the encoder is None, the messages
            must be such records.
        options: Settings of confluent_kafka, with "kafka." in front of their names; `wallaroo run` needs this package.
        exactly_once: True writes in transactions: readers with `isolation.level=read_committed` see each record
            exactly once, even after crashes. False loses no record, but may write some of them again after a crash.
        on_error: Policy if the encoder fails, as for `ApplicationBuilder`; None takes the application's policy.
        content: "record" for whole records with headers, time, and tombstones; None for values.
        create: As for `KafkaSourceConfig`.

    Attributes:
        topic_options: Topic, brokers and options for Kafka's client.

    Example:
        >>> import wallaroo
        >>> @wallaroo.encoder
        ... def encode(order):
        ...     return order["text"], order["symbol"]
        >>> sink = KafkaSinkConfig("orders", "127.0.0.1:9092", encoder=encode, exactly_once=True)
        >>> sink.topic_options.topic, sink.topic_options.brokers
        ('orders', [('127.0.0.1', '9092')])

    Source: Wallaroo 0.1 to 0.4.
    """

    def __init__(
        self,
        topic: str,
        brokers: Brokers,
        log_level: str = "Warn",
        max_produce_buffer_ms: int | None = None,
        max_message_size: int | None = None,
        encoder: Encoding | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        exactly_once: bool = False,
        on_error: str | None = None,
        content: str | None = None,
        create: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(component_of(encoder, content), on_error)
        self.content, self.create = content, deepcopy(create)
        limits = {LINGER: max_produce_buffer_ms, MESSAGE_SIZE: max_message_size}
        settings = {name: limit for name, limit in limits.items() if limit is not None} | dict(options or {})
        self.topic_options = TopicOptions(topic, _pairs(brokers), log_level, options=settings)
        self.topic_options.exactly_once = exactly_once

    def fields(self, place: Place) -> tuple[str, dict[str, Any]]:
        """Return the kind of the sink and its fields for the topology document."""
        fields = _fields(place, self.topic_options) or {}
        check_options(place, fields.get("options", {}), is_source=False)
        exactly_once = self.topic_options.exactly_once
        if not isinstance(exactly_once, bool):
            place.wrong("exactly_once", shown(exactly_once), "True or False", fix="pass exactly_once=True")
        fields |= {"exactly_once": True} if exactly_once else {}
        return "kafka", fields | content_of(place, self.content) | create_of(place, self.create)


class DefaultKafkaSourceCLIParser(KafkaSourceConfig):
    """A source that reads a Kafka topic, configured by the application's arguments.

    `--NAME_topic` and `--NAME_brokers HOST:PORT,...` are required. `--NAME_partitions 0,1:END` and
    `--NAME_consumer_check_crc` are optional. So are `--NAME_offset_default` (START, END, an offset, or -n for n records
    before the end; START by default), `--NAME_fetch_interval`, `_min_fetch_bytes`, `_max_fetch_bytes` and
    `_partition_fetch_max_bytes`. These five may also be written as `--NAME_consumer_...`.

    Args:
        decoder: Object (or class) with `decode(bs)`, which gets a record's value.
        name: NAME in the names of the options.
        on_error: As for `KafkaSourceConfig`.

    Attributes:
        topic_options: The parsed options. Their faults are reported when the application is built (T240).

    Example:
        >>> import wallaroo
        >>> from wallaroo.endpoint.config import given_arguments
        >>> args = "--orders_topic in --orders_brokers 127.0.0.1:9092 --orders_offset_default END"
        >>> with given_arguments(args.split()):  # as `wallaroo run` does around `application_setup`
        ...     source = DefaultKafkaSourceCLIParser(wallaroo.Decoder(bytes.decode, 4, ">I"), name="orders")
        >>> source.topic_options.topic, source.topic_options.brokers, source.topic_options.start
        ('in', [('127.0.0.1', '9092')], 'end')

    Source: Wallaroo 0.5 and 0.6.
    """

    def __init__(self, decoder: Decoding, name: str = "kafka_source", *, on_error: str | None = None) -> None:
        super().__init__("", (), decoder=decoder, on_error=on_error)
        self.topic_options = source_topic(name, current_arguments())


class CustomKafkaSourceCLIParser(KafkaSourceConfig):
    """A source that reads a Kafka topic, configured by the options `--kafka_source_topic` and so on in `args`.

    Args:
        args: The arguments of `application_setup`.
        decoder: Object (or class) with `decode(bs)`, which gets a record's value.
        on_error: As for `KafkaSourceConfig`.

    Attributes:
        topic_options: The parsed options. Their faults are reported when the application is built (T240).

    Example:
        >>> import wallaroo
        >>> args = "--kafka_source_topic in --kafka_source_brokers one,two:9093 --kafka_source_partitions 0,1"
        >>> source = CustomKafkaSourceCLIParser(args.split(), wallaroo.Decoder(bytes.decode, 4, ">I"))
        >>> source.topic_options.brokers, source.topic_options.partitions
        ([('one', '9092'), ('two', '9093')], [{'number': 0}, {'number': 1}])

    Source: Wallaroo 0.5 and 0.6.
    """

    def __init__(self, args: Sequence[str], decoder: Decoding, *, on_error: str | None = None) -> None:
        super().__init__("", (), decoder=decoder, on_error=on_error)
        self.topic_options = source_topic("kafka_source", args)


class DefaultKafkaSinkCLIParser(KafkaSinkConfig):
    """A sink that writes a Kafka topic, configured by the application's arguments.

    `--NAME_topic` and `--NAME_brokers HOST:PORT,...` are required. Optional are `--NAME_produce_timeout_ms`,
    `_max_produce_buffer_ms`, `_max_produce_message_size` (or `_max_message_size`), `_max_inflight_requests`,
    `_produce_acks`, `_producer_compression`, and `--NAME_exactly_once`, which has no value.

    Args:
        encoder: As for `KafkaSinkConfig`.
        name: NAME in the names of the options.
        on_error: As for `KafkaSinkConfig`.

    Attributes:
        topic_options: The parsed options. Their faults are reported when the application is built (T240).

    Example:
        >>> import wallaroo
        >>> from wallaroo.endpoint.config import given_arguments
        >>> args = "--kafka_sink_topic out --kafka_sink_brokers 127.0.0.1:9092 --kafka_sink_produce_acks 1"
        >>> with given_arguments(args.split()):  # as `wallaroo run` does around `application_setup`
        ...     sink = DefaultKafkaSinkCLIParser(wallaroo.Encoder(str.encode))
        >>> sink.topic_options.topic, sink.topic_options.options
        ('out', {'kafka.acks': '1'})

    Source: Wallaroo 0.5 and 0.6.
    """

    def __init__(self, encoder: Encoding, name: str = "kafka_sink", *, on_error: str | None = None) -> None:
        super().__init__("", (), encoder=encoder, on_error=on_error)
        self.topic_options = sink_topic(name, current_arguments())


class CustomKafkaSinkCLIParser(KafkaSinkConfig):
    """A sink that writes a Kafka topic, configured by the options `--kafka_sink_topic` and so on in `args`.

    Args:
        args: The arguments of `application_setup`.
        encoder: As for `KafkaSinkConfig`.
        on_error: As for `KafkaSinkConfig`.

    Attributes:
        topic_options: The parsed options. Their faults are reported when the application is built (T240).

    Example:
        >>> import wallaroo
        >>> args = "--kafka_sink_topic out --kafka_sink_brokers one,two:9093 --kafka_sink_producer_compression lz4"
        >>> sink = CustomKafkaSinkCLIParser(args.split(), wallaroo.Encoder(str.encode))
        >>> sink.topic_options.brokers, sink.topic_options.options
        ([('one', '9092'), ('two', '9093')], {'kafka.compression.type': 'lz4'})

    Source: Wallaroo 0.5 and 0.6.
    """

    def __init__(self, args: Sequence[str], encoder: Encoding, *, on_error: str | None = None) -> None:
        super().__init__("", (), encoder=encoder, on_error=on_error)
        self.topic_options = sink_topic("kafka_sink", args)


def _fields(place: Place, chosen: TopicOptions) -> dict[str, Any] | None:
    """Return topic, brokers and options for the topology document. If options are wrong, add findings, return None."""
    if chosen.findings:
        for finding in chosen.findings:
            place.take(finding)
        return None
    topic = check.name(place, "topic", chosen.topic)
    if topic and isinstance(chosen.topic, str) and not check.is_topic(topic):
        expected = f"a name of {check.TOPIC_NAMES}"
        place.wrong("topic", shown(topic), expected, fix=f"pass {expected}")
    if not chosen.brokers:
        place.wrong("brokers", "none", "addresses of brokers", fix='pass e.g. "127.0.0.1:9092"')
    brokers = []
    for given_host, given_port in chosen.brokers:
        host, port = check.address(place, "broker", given_host, given_port, place.location)
        brokers.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    return {"topic": topic, "brokers": brokers, "options": option_texts(place, chosen.options)}


def _pairs(brokers: Any) -> list[tuple[Any, Any]]:
    """Return host and port of each broker. A value that is no address gets an empty port, which is refused later."""
    each = brokers.split(",") if isinstance(brokers, str) else brokers if isinstance(brokers, Sequence) else [brokers]
    return [_pair(broker) for broker in each]


def _pair(broker: Any) -> tuple[Any, Any]:
    if isinstance(broker, str):
        host, colon, port = broker.strip().rpartition(":")
        return (host.removeprefix("[").removesuffix("]"), port) if colon else (broker.strip(), "")
    return tuple(broker) if isinstance(broker, (tuple, list)) and len(broker) == 2 else (broker, "")
