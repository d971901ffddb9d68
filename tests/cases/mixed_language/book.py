"""Prices and positions, for programs in other languages: what book/book.go does in Go."""

import wallaroo

PRICES = {"AAPL": 150, "GOOG": 120, "MSFT": 300}


def application_setup(args):
    return wallaroo.build_library(
        [
            wallaroo.offer(price, input="json", output="json"),
            wallaroo.offer(position, input="json", output="json"),
        ]
    )


@wallaroo.computation("price")
def price(order):
    return {"symbol": order["symbol"], "amount": order["amount"], "value": order["amount"] * PRICES[order["symbol"]]}


class Position:
    def __init__(self):
        self.amount = 0
        self.value = 0


@wallaroo.state_computation("position", state=Position)
def position(priced, held):
    held.amount += priced["amount"]
    held.value += priced["value"]
    if held.amount < 0:
        raise ValueError("sold what is not held")
    return {"symbol": priced["symbol"], "amount": held.amount, "value": held.value}
