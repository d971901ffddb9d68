"""Checks of a declared Kafka topic: refuses parameters and options that have no effect."""

from collections.abc import Mapping

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.error import Place
from wallaroo.message.kafka_record import PREFIX

# Options of Spark's source that are not settings of Kafka's client. Spark ignores the case of their names.
SPARK_OPTIONS = (
    "failOnDataLoss", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs", "maxOffsetsPerTrigger", "maxRecordsPerPartition", "maxTriggerDelay",
    "minOffsetsPerTrigger", "minPartitions",
)  # fmt: skip
_PARAMETERS = {"bootstrap.servers": "brokers", "topic": "topic"}  # options of Kafka and Spark, with their parameters
_CHOSEN = "--NAME_partitions of DefaultKafkaSourceCLIParser"
_OF_SOURCES = {"subscribe": "topic", "assign": _CHOSEN, "startingoffsets": "start"}


def check_options(place: Place, options: Mapping[str, str], *, is_source: bool) -> None:
    """Record T207 for options of a source or sink that have no effect."""
    spark = {name.lower() for name in SPARK_OPTIONS} if is_source else set()
    parameters = _PARAMETERS | (_OF_SOURCES if is_source else {})
    for name in options:
        setting = name.removeprefix(PREFIX)
        if parameter := parameters.get(setting.lower()):
            expected = f"none that the parameter {parameter} has"
            place.wrong("options", shown(name), expected, fix=f"pass it as {parameter}")
        elif not setting or (setting == name and name.lower() not in spark):
            expected = f'settings of Kafka\'s client with "{PREFIX}" in front'
            if is_source:
                expected += ', or options of Spark\'s source, e.g. "maxOffsetsPerTrigger"'
            place.wrong("options", shown(name), expected, fix=f'write "{PREFIX}{setting}", or leave it out')
