"""Rejects orders of symbols whose spread is too wide: two sources are merged, and one state per symbol serves both."""

from collections import namedtuple

import wallaroo

Order = namedtuple("Order", ["symbol", "number", "quantity"])
Quote = namedtuple("Quote", ["symbol", "bid", "offer"])
Rejection = namedtuple("Rejection", ["symbol", "number", "quantity", "bid", "offer"])


def application_setup(args):
    quote_address, order_address = wallaroo.tcp_parse_input_addrs(args)
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    quotes = wallaroo.source("Market Data", wallaroo.TCPSourceConfig(*quote_address, decode_quote))
    orders = wallaroo.source("Orders", wallaroo.TCPSourceConfig(*order_address, decode_order))
    checked = quotes.key_by(symbol_of).merge(orders.key_by(symbol_of)).to(check_market_spread)
    return wallaroo.build_application(
        "Market Spread", checked.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_rejection))
    )


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


@wallaroo.key_extractor
def symbol_of(data):
    return data.symbol


@wallaroo.state_computation("check market spread", state=SymbolData)
def check_market_spread(data, state):
    if isinstance(data, Quote):
        spread = data.offer - data.bid
        state.bid, state.offer = data.bid, data.offer
        state.rejects_orders = spread >= 0.05 or spread / ((data.bid + data.offer) / 2) >= 0.05
        return None
    return Rejection(*data, state.bid, state.offer) if state.rejects_orders else None


@wallaroo.encoder
def encode_rejection(data):
    return f"{data.symbol} {data.number} {data.quantity} {data.bid:.2f} {data.offer:.2f}\n"
