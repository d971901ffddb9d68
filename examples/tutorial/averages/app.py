"""Averages of sensors over ten seconds, by the time at which they measured."""

import struct

import wallaroo


def application_setup(args):
    """Windows of ten seconds wait ten more for late messages."""
    ten_seconds = wallaroo.range_windows(wallaroo.seconds(10)).with_delay(wallaroo.seconds(10))
    averages = (
        wallaroo.source("readings", wallaroo.TCPSourceConfig("127.0.0.1", 7010, Decoder()))
        .key_by(sensor)
        .to(ten_seconds.over(Average))
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
    )
    return wallaroo.build_application("Averages", averages)


class Decoder:
    """Reads "TIME SENSOR DEGREES"; TIME is in milliseconds since 1970."""

    def header_length(self):
        """Return how many bytes precede a message."""
        return 4

    def payload_length(self, header):
        """Return the length of the message that follows."""
        return struct.unpack(">I", header)[0]

    def decode(self, payload):
        """Make a message."""
        _, name, degrees = payload.decode().split(" ")
        return name, float(degrees)

    def event_time(self, payload):
        """Return when it was measured: windows go by it, not by the time of arrival."""
        return int(payload.split(b" ", 1)[0])


@wallaroo.key_extractor
def sensor(reading):
    """Each sensor has windows of its own."""
    return reading[0]


class Average(wallaroo.Aggregation):
    """Sum and number of the readings of a window."""

    def initial_accumulator(self):
        """Return the accumulator of no messages."""
        return [0.0, 0]

    def update(self, reading, accumulator):
        """Add a reading, in place."""
        accumulator[0] += reading[1]
        accumulator[1] += 1

    def combine(self, earlier, later):
        """Join two accumulators into a new one."""
        return [earlier[0] + later[0], earlier[1] + later[1]]

    def output(self, key, accumulator):
        """Return the result of a window; None for windows in which nothing was measured."""
        total, count = accumulator
        return f"{key} {total / count:.1f}" if count else None


@wallaroo.encoder
def encode(text):
    """One line for each window."""
    return (text + "\n").encode()
