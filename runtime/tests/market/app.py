"""Orders are checked against the market: one pipeline updates a symbol's state, another one reads it."""

import struct

import wallaroo


def application_setup(args):
    ((out_host, out_port),) = wallaroo.tcp_parse_output_addrs(args)[:1]
    builder = wallaroo.ApplicationBuilder("market spread")
    builder.new_pipeline("orders", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    builder.to_state_partition(check_order, Market, "symbols", symbol_of)
    builder.to(note)
    builder.to_state_partition(number_rejected, Rejected, "rejected", first_letter_of)
    builder.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    builder.new_pipeline("market", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    builder.to_state_partition(update_market, Market, "symbols", symbol_of)
    builder.done()
    return builder.build()


class Market:
    """The latest spread of a symbol."""

    def __init__(self):
        self.bid, self.offer = 0, 0


class Rejected:
    """How many orders of symbols with one first letter were rejected."""

    def __init__(self):
        self.count = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    symbol, first, second = struct.unpack(">4sII", data)
    return symbol.decode(), first, second


@wallaroo.partition
def symbol_of(message):
    return message[0]


@wallaroo.state_computation("update market")
def update_market(message, market):
    _, market.bid, market.offer = message
    return None, True


@wallaroo.state_computation("check order")
def check_order(order, market):
    symbol, number, price = order
    is_rejected = not market.bid <= price <= market.offer
    return ((symbol, number) if is_rejected else None), False


@wallaroo.computation("note")
def note(order):
    return order


@wallaroo.partition
def first_letter_of(order):
    return order[0][0]


@wallaroo.state_computation("number rejected")
def number_rejected(order, rejected):
    rejected.count += 1
    return (*order, rejected.count), True


@wallaroo.encoder
def encode(order):
    return "{} {} {}\n".format(*order).encode()
