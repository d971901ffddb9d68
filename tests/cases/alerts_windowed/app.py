"""Alerts about users whose transactions of nine seconds, looked at every three, add up to a large sum."""

import struct

import wallaroo

LIMIT = 2000


def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    totals = wallaroo.range_windows(wallaroo.seconds(9)).with_slide(wallaroo.seconds(3)).over(Total)
    pipeline = (
        wallaroo.source("Transactions", wallaroo.TCPSourceConfig(in_host, in_port, Decoder()))
        .key_by(user)
        .to(totals)
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    )
    return wallaroo.build_application("Alerts (windowed)", pipeline)


class Transaction:
    def __init__(self, user, amount):
        self.user = user
        self.amount = amount


class Decoder:
    """Reads `TIME USER AMOUNT`; TIME, in milliseconds since 1970, is when the transaction was made."""

    def header_length(self):
        return 4

    def payload_length(self, bs):
        return struct.unpack(">I", bs)[0]

    def decode(self, bs):
        _, name, amount = bs.decode("utf-8").split(" ")
        return Transaction(name, int(amount))

    def event_time(self, bs):
        return int(bs.split(b" ", 1)[0])


@wallaroo.key_extractor
def user(transaction):
    return transaction.user


class Total(wallaroo.Aggregation):
    def initial_accumulator(self):
        return [0]

    def update(self, transaction, accumulator):
        accumulator[0] += transaction.amount

    def combine(self, accumulator1, accumulator2):
        return [accumulator1[0] + accumulator2[0]]

    def output(self, user, accumulator):
        if accumulator[0] > LIMIT:
            return f"{user} deposited {accumulator[0]}"
        if accumulator[0] < -LIMIT:
            return f"{user} withdrew {-accumulator[0]}"
        return None


@wallaroo.encoder
def encode(alert):
    return alert + "\n"
