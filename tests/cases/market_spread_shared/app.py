"""Rejects orders of symbols whose spread is too wide: two pipelines share the state of a name, one has no sink."""

from collections import namedtuple

import wallaroo

SYMBOLS = ["AAPL", "FIS", "GOOG", "IBM", "MSFT", "NONE", "ORCL", "TSLA"]
Order = namedtuple("Order", ["symbol", "number", "quantity"])
Quote = namedtuple("Quote", ["symbol", "bid", "offer"])
Rejection = namedtuple("Rejection", ["symbol", "number", "quantity", "bid", "offer"])


def application_setup(args):
    quote_address, order_address = wallaroo.tcp_parse_input_addrs(args)
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    ab = wallaroo.ApplicationBuilder("Market Spread, shared")
    ab.new_pipeline("Market Data", wallaroo.TCPSourceConfig(*quote_address, decode_quote))
    ab.to_state_partition(update_symbol, SymbolData, "symbol data", symbol_of, SYMBOLS)
    ab.done()
    ab.new_pipeline("Orders", wallaroo.TCPSourceConfig(*order_address, decode_order))
    ab.to_state_partition(check_order, SymbolData, "symbol data", symbol_of, SYMBOLS)
    ab.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_rejection))
    return ab.build()


class SymbolData:
    """The last quote of one symbol; until there is one, orders are rejected."""

    def __init__(self):
        self.bid = 0.0
        self.offer = 0.0
        self.rejects_orders = True


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_quote(bs):
    symbol, bid, offer = bs.decode("ascii").split()
    return Quote(symbol, float(bid), float(offer))


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_order(bs):
    symbol, number, quantity = bs.decode("ascii").split()
    return Order(symbol, int(number), int(quantity))


@wallaroo.partition
def symbol_of(data):
    return data.symbol


@wallaroo.state_computation("update symbol")
def update_symbol(data, state):
    spread = data.offer - data.bid
    state.bid, state.offer = data.bid, data.offer
    state.rejects_orders = spread >= 0.05 or spread / ((data.bid + data.offer) / 2) >= 0.05
    return None, True


@wallaroo.state_computation("check order")
def check_order(data, state):
    return (Rejection(*data, state.bid, state.offer) if state.rejects_orders else None), False


@wallaroo.encoder
def encode_rejection(data):
    return f"{data.symbol} {data.number} {data.quantity} {data.bid:.2f} {data.offer:.2f}\n"
