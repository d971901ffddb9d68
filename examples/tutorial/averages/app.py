"""Averages of sensors over ten seconds, by the time at which they measured."""

import struct

import wallaroo


def application_setup(args):
    """Declare windows of ten seconds, which wait ten more seconds for late messages."""
    ten_seconds = wallaroo.range_windows(wallaroo.seconds(10)).with_delay(wallaroo.seconds(10))
    averages = (
        wallaroo.source("readings", wallaroo.TCPSourceConfig("127.0.0.1", 7010, Decoder()))
        .key_by(sensor)
        .to(ten_seconds.over(Average))
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
    )
    return wallaroo.build_application("Averages", averages)


class Decoder:
    """Reads messages "TIME SENSOR DEGREES". TIME is in milliseconds since 1970."""

    def header_length(self):
        """Return the number of bytes in front of each message."""
        return 4

    def payload_length(self, header):
        """Return the length of the message that follows."""
        return struct.unpack(">I", header)[0]

    def decode(self, payload):
        """Return the sensor's name and its reading in degrees."""
        _, name, degrees = payload.decode().split(" ")
        return name, float(degrees)

    def event_time(self, payload):
        """Return the time of the measurement. Windows use this time, not the time of arrival."""
        return int(payload.split(b" ", 1)[0])


@wallaroo.key_extractor
def sensor(reading):
    """Return the sensor's name as the key, so that each sensor has its own windows."""
    return reading[0]


class Average(wallaroo.Aggregation):
    """Computes the average of a window from the sum and the number of its readings."""

    def initial_accumulator(self):
        """Return the accumulator of an empty window: sum and number."""
        return [0.0, 0]

    def update(self, reading, accumulator):
        """Add a reading to the accumulator in place."""
        accumulator[0] += reading[1]
        accumulator[1] += 1

    def combine(self, earlier, later):
        """Join two accumulators into a new one."""
        return [earlier[0] + later[0], earlier[1] + later[1]]

    def output(self, key, accumulator):
        """Return the average of a window; None for a window without readings."""
        total, count = accumulator
        return f"{key} {total / count:.1f}" if count else None


@wallaroo.encoder
def encode(text):
    """Return the result of a window as a line."""
    return (text + "\n").encode()
