"""Two pipelines whose steps share states, twice in a row; `tests/test_order_worker.py` runs their stages.

A text `key number` is a message of one of two types. A state numbers its messages and sums them up so that each other
order gives another sum. Number 13 fails.
"""

from collections import namedtuple

import wallaroo

Odd = namedtuple("Odd", ["key", "number", "origin"])
Even = namedtuple("Even", ["origin", "text", "key", "number"])


def application_setup(args):
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    builder = wallaroo.ApplicationBuilder("Order")
    for origin, (host, port) in enumerate(wallaroo.tcp_parse_input_addrs(args)):
        builder.new_pipeline(f"in {origin}", wallaroo.TCPSourceConfig(host, port, Decoder(origin)))
        builder.to_state_partition(Follow("first"), Trail, "first trail", key_of)
        builder.to_state_partition(Follow("second"), Trail, "second trail", number_of)
        builder.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return builder.build()


class Trail:
    def __init__(self):
        self.count = self.sum = 0


class Decoder:
    def __init__(self, origin):
        self.origin = origin

    def header_length(self):
        return 4

    def payload_length(self, bs):
        return int.from_bytes(bs, "big")

    def decode(self, bs):
        key, number = bs.decode().split()
        return message(key, int(number), self.origin)


def message(key, number, origin):
    return Odd(key, number, origin) if number % 2 else Even(origin, "even", key, number)


@wallaroo.partition
def key_of(data):
    return data.key


@wallaroo.partition
def number_of(data):
    return str(data.number % 3)


class Follow:
    """Numbers messages; the second one in a row reports what the first one has found."""

    def __init__(self, name):
        self.called = name

    def name(self):
        return self.called

    def compute(self, data, state):
        state.count += 1
        if data.number == 13:
            msg = "thirteen"
            raise ValueError(msg)
        state.sum = (state.sum * 31 + data.number + 7 * data.origin) % 1_000_003
        return message(f"{data.key}.{state.count}.{state.sum}", data.number, data.origin), True


@wallaroo.encoder
def encode(data):
    return f"{data.key} {data.number} {data.origin}"
