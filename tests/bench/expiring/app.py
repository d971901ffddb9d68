"""Counts each key, and forgets it after a minute: the application of `make bench-expiry`, in Python."""

from datetime import timedelta

import wallaroo


def application_setup(args):
    (in_host, in_port), (out_host, out_port) = (
        wallaroo.tcp_parse_input_addrs(args)[0],
        wallaroo.tcp_parse_output_addrs(args)[0],
    )
    names = wallaroo.source("names", wallaroo.TCPSourceConfig(in_host, in_port, decode)).key_by(key)
    return wallaroo.build_application(
        "Expiring", names.to(count).to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    )


class Count:
    def __init__(self):
        self.value = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    return data.decode()


@wallaroo.key_extractor
def key(name):
    return name


@wallaroo.state_computation("count", state=Count, ttl=timedelta(minutes=1))
def count(name, state):
    state.value += 1
    return f"{name} {state.value}"


@wallaroo.encoder
def encode(line):
    return line + "\n"
