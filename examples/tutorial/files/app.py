"""Reads log files as they appear in a directory, and writes the number of errors of each service to another one."""

import wallaroo


def application_setup(args):
    """Source and sink are formats of Spark, by their names."""
    source = wallaroo.SparkSourceConfig("text", {"path": "in"}, decode)
    sink = wallaroo.SparkSinkConfig("csv", {"path": "out"}, encode, "cast(key AS STRING), cast(value AS STRING)")
    errors = wallaroo.source("logs", source).to(only_errors).key_by(service).to(count).to_sink(sink)
    return wallaroo.build_application("Errors", errors)


class Errors:
    """The state of a service."""

    def __init__(self):
        self.count = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(row):
    """Make a message of a row, "SERVICE LEVEL TEXT"; rows have no framing, so the header is not looked at."""
    name, level, _ = row.decode().split(" ", 2)
    return name, level


@wallaroo.computation("only errors")
def only_errors(entry):
    """Return None for what does not go on."""
    return entry if entry[1] == "ERROR" else None


@wallaroo.key_extractor
def service(entry):
    """Count by service."""
    return entry[0]


@wallaroo.state_computation("count", Errors)
def count(entry, errors):
    """Return the service and its number of errors so far."""
    errors.count += 1
    return entry[0], errors.count


@wallaroo.encoder
def encode(result):
    """Return value and key of a row."""
    return str(result[1]).encode(), result[0].encode()
