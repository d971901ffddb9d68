"""Reads log files as they appear in a directory, and writes the number of errors of each service to another one."""

import wallaroo


def application_setup(args):
    """Declare a source and a sink that Spark reads and writes, by the names of their formats."""
    source = wallaroo.SparkSourceConfig("text", {"path": "in"}, decode)
    sink = wallaroo.SparkSinkConfig("csv", {"path": "out"}, encode, "cast(key AS STRING), cast(value AS STRING)")
    errors = wallaroo.source("logs", source).to(only_errors).key_by(service).to(count).to_sink(sink)
    return wallaroo.build_application("Errors", errors)


class Errors:
    """The state of a service: its number of errors."""

    def __init__(self):
        self.count = 0


@wallaroo.decoder
def decode(row):
    """Return service and level of a row "SERVICE LEVEL TEXT"."""
    name, level, _ = row.decode().split(" ", 2)
    return name, level


@wallaroo.computation("only errors")
def only_errors(entry):
    """Return an error as it is, and None for other entries, which are dropped."""
    return entry if entry[1] == "ERROR" else None


@wallaroo.key_extractor
def service(entry):
    """Return the service as the key, so that each service has its own count."""
    return entry[0]


@wallaroo.state_computation("count", Errors)
def count(entry, errors):
    """Return the service and its number of errors so far."""
    errors.count += 1
    return entry[0], errors.count


@wallaroo.encoder
def encode(result):
    """Return the value and the key of an output row: the count and the service."""
    return str(result[1]).encode(), result[0].encode()
