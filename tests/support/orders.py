"""Orders of customers, and what must come of them."""

from collections import Counter

PRICES = {"AAPL": 150, "GOOG": 120, "MSFT": 300}


ORDERS = [f"{share} a{account}" for share in PRICES for account in range(20)]


# An account's number of orders is the amount of its next one, so that a share's position depends on every message
# before, in its order. Between the two states, messages go to the program in Go and back.
RANKS = """
import wallaroo

def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    book = wallaroo.other_program("book", "book")
    orders = wallaroo.source("Orders", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    ranked = orders.key_by(account).to(rank)
    priced = ranked.to(book.computation("price", input="json", output="json"))
    held = priced.key_by(symbol).to(book.state_computation("position", input="json", output="json"))
    lines = held.to(line).to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return wallaroo.build_application("Ranks", lines)

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode("utf-8").split(" ")

@wallaroo.key_extractor
def account(order):
    return order[1]

class Rank:
    def __init__(self):
        self.orders = 0

@wallaroo.state_computation("rank", state=Rank)
def rank(order, held):
    held.orders += 1
    return {"symbol": order[0], "amount": held.orders}

@wallaroo.key_extractor
def symbol(priced):
    return priced["symbol"]

@wallaroo.computation("line")
def line(position):
    return "{symbol} {amount} {value}\\n".format(**position)

@wallaroo.encoder
def encode(text):
    return text.encode()
"""


def expected(orders: list[str]) -> dict[str, list[str]]:
    """Return the lines of each share, in order."""
    ranks: Counter[str] = Counter()
    held: Counter[str] = Counter()
    found: dict[str, list[str]] = {share: [] for share in PRICES}
    for order in orders:
        share, account = order.split(" ")
        ranks[account] += 1
        held[share] += ranks[account]
        found[share].append(f"{share} {held[share]} {held[share] * PRICES[share]}")
    return found


def by_share(lines: list[str]) -> dict[str, list[str]]:
    """Return the lines of each share, in order."""
    return {share: [line for line in lines if line.startswith(f"{share} ")] for share in PRICES}
