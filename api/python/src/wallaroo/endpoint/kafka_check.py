"""Checks of Kafka topics as a program declares them: parameters and options that nothing reads are refused."""

from collections.abc import Mapping
from typing import Any

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.place import Place

PREFIX = "kafka."
# Options of Spark's source that have another name than Kafka's client has; Spark reads them in any case.
_WHOLE = ("failOnDataLoss", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix")
_LIMITING = (
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
    "maxTriggerDelay",
    "minOffsetsPerTrigger",
    "minPartitions",
)
_PARAMETERS = {"bootstrap.servers": "brokers", "topic": "topic"}  # which have what Kafka and Spark take as options
_OF_SOURCES = {"subscribe": "topic", "startingoffsets": "start"}
SPARK_OPTIONS = (*_WHOLE, "kafkaConsumer.pollTimeoutMs", *_LIMITING)


def check_options(place: Place, options: Mapping[str, str], *, is_source: bool) -> None:
    """Record T207 for options of a source or sink that nothing reads."""
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
    """Record T207 for a table that is not read whole, in order and as records."""
    if content is None:
        place.wrong("table", "True", "False: a table has whole records", fix='pass content="record" with it')
    if start != "start":
        place.wrong("start", shown(start), '"start": a table is read whole', fix="leave start out, or table")
    for name in options:
        if name.lower() in {limit.lower() for limit in _LIMITING}:
            expected = "none that would divide a table, which is read whole and in order"
            place.wrong("options", shown(name), expected, fix="leave the option out")


def check_create(place: Place, topic: str, create: Any) -> None:
    """Record T207 for a topic that would be created like itself."""
    if isinstance(create, Mapping) and topic and create.get("like") == topic:
        expected = 'the name of another topic in "like"'
        place.wrong("create", shown(dict(create)), expected, fix=f"pass {expected}")
