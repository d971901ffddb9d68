"""Chooses the class of a sink by its kind. CONTRIBUTING.md lists all steps that a new kind needs."""

from collections.abc import Callable
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.egress.connector_sink import CommittingSink
from wallaroo_runtime.egress.sink import Sink
from wallaroo_runtime.service._proto import service_pb2 as pb


def sink_of(config: pb.Sink, directory: Path, say: Callable[[Diagnostic], None]) -> Sink:
    """Return a sink of the kind that a configuration names."""
    if config.HasField("kafka"):
        # Imported late: Kafka's client takes long to import, and need not be installed.
        from wallaroo_runtime.egress.kafka_sink import KafkaSink
        from wallaroo_runtime.egress.kafka_transaction_sink import TransactionalSink

        return (TransactionalSink if config.kafka.exactly_once else KafkaSink)(config, directory, say)
    if config.HasField("cookie"):
        return CommittingSink(config, directory, say)
    return Sink(config, directory, say)
