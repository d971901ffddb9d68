"""Checks of a declared Kafka topic: refuses parameters and options that have no effect."""

from collections.abc import Mapping
from typing import Any

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.place import Place

PREFIX = "kafka."
# Options of Spark's source that are not settings of Kafka's client. Spark ignores the case of their names.
_WHOLE = ("failOnDataLoss", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix")
_LIMITING = (
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
    "maxTriggerDelay",
    "minOffsetsPerTrigger",
    "minPartitions",
)
_PARAMETERS = {"bootstrap.servers": "brokers", "topic": "topic"}  # options of Kafka and Spark, with their parameters
_OF_SOURCES = {"subscribe": "topic", "startingoffsets": "start"}
SPARK_OPTIONS = (*_WHOLE, "kafkaConsumer.pollTimeoutMs", *_LIMITING)


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
                expected += f', or options of Spark\'s source, e.g. "{_LIMITING[0]}"'
            place.wrong("options", shown(name), expected, fix=f'write "{PREFIX}{setting}", or leave it out')


def check_table(place: Place, content: Any, start: Any, options: Mapping[str, str]) -> None:
    """Record T207 for a table that would not be read completely, in order and as records."""
    if content is None:
        place.wrong("table", "True", "False: a table has whole records", fix='pass content="record" with it')
    if start != "start":
        place.wrong("start", shown(start), '"start": a table is read whole', fix="leave start out, or table")
    for name in options:
        if name.lower() in {limit.lower() for limit in _LIMITING}:
            expected = "none that would divide a table, which is read whole and in order"
            place.wrong("options", shown(name), expected, fix="leave the option out")


def check_create(place: Place, topic: str, create: Any) -> None:
    """Record T207 if `like` in the settings of a new topic names the topic itself."""
    if isinstance(create, Mapping) and topic and create.get("like") == topic:
        expected = 'the name of another topic in "like"'
        place.wrong("create", shown(dict(create)), expected, fix=f"pass {expected}")
