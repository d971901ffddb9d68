"""Books payments by card; what is far above a card's average goes to a second sink instead."""

import wallaroo

FACTOR, KNOWN = 5, 3  # times the average, once so many payments are known


def application_setup(args):
    """Declare two ends: the step's ordinary messages, and those of its output "alerts"."""
    booked = wallaroo.source("payments", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode)).key_by(card).to(book)
    ledger = booked.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
    alerts = booked.output("alerts").to(describe).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7003, encode))
    return wallaroo.build_application("Fraud", ledger, alerts)


class Account:
    """The state of a card."""

    def __init__(self):
        self.count, self.total = 0, 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    """Read "CARD AMOUNT"."""
    card, amount = payload.decode().split(" ")
    return card, int(amount)


@wallaroo.key_extractor
def card(payment):
    """Payments of one card meet one account."""
    return payment[0]


@wallaroo.state_computation("book", Account, outputs=("alerts",))
def book(payment, account):
    """Book a payment, or emit it to the other output."""
    name, amount = payment
    if account.count >= KNOWN and amount * account.count > FACTOR * account.total:
        return wallaroo.output("alerts", payment)
    account.count += 1
    account.total += amount
    return f"{name} {account.total}"


@wallaroo.computation("describe")
def describe(payment):
    """Make the text of an alert."""
    return f"{payment[0]} refused {payment[1]}"


@wallaroo.encoder
def encode(text):
    """One line for each message."""
    return (text + "\n").encode()
