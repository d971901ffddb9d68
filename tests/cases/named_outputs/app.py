"""Keeps the highest temperature of each sensor; alerts and what cannot be read leave by outputs of their own."""

import wallaroo

LIMIT = 100


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    readings = wallaroo.source("readings", wallaroo.TCPSourceConfig(in_host, in_port, decode)).to(read)
    highest = readings.key_by(sensor).to(keep_highest)
    unread = readings.output("unread").key_by(first_word)
    alerts = highest.output("alerts").to(alarm)
    end = highest.merge(alerts).merge(unread)
    end = end.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return wallaroo.build_application("Named outputs", end)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()


@wallaroo.computation("read", outputs=("unread", "empty"))
def read(line):
    """Read "SENSOR DEGREES". Nothing goes on from the output `empty`: its messages are counted and dropped."""
    if not line:
        return wallaroo.output("empty", line)
    name, _, degrees = line.partition(" ")
    if not degrees.isdecimal():
        return wallaroo.output("unread", "unread " + line)
    return [name, int(degrees)]


@wallaroo.key_extractor
def sensor(reading):
    return reading[0]


@wallaroo.key_extractor
def first_word(line):
    return line.partition(" ")[0]


class Highest:
    def __init__(self):
        self.degrees = -1


@wallaroo.state_computation_multi("keep highest", Highest, outputs=("alerts",))
def keep_highest(reading, highest):
    name, degrees = reading
    if degrees > LIMIT:
        yield wallaroo.output("alerts", reading)
    if degrees == 999:
        raise ValueError(f"{name} is broken")  # then its alert does not go on either
    if degrees > highest.degrees:
        highest.degrees = degrees
        yield f"{name} highest {degrees}"


@wallaroo.computation("alarm")
def alarm(reading):
    return f"{reading[0]} alert {reading[1]}"


@wallaroo.encoder
def encode(line):
    return line + "\n"
