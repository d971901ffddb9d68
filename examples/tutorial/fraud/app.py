"""Books payments by card. A payment far above its card's average goes to a second sink instead."""

import wallaroo

FACTOR, KNOWN = 5, 3  # a payment is refused above FACTOR times the average of at least KNOWN payments


def application_setup(args):
    """Declare two sinks: for the ordinary messages of the step, and for the messages of its output "alerts"."""
    booked = wallaroo.source("payments", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode)).key_by(card).to(book)
    ledger = booked.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
    alerts = booked.output("alerts").to(describe).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7003, encode))
    return wallaroo.build_application("Fraud", ledger, alerts)


class Account:
    """The state of a card: number and sum of its payments."""

    def __init__(self):
        self.count, self.total = 0, 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    """Return card and amount of a message "CARD AMOUNT"."""
    card, amount = payload.decode().split(" ")
    return card, int(amount)


@wallaroo.key_extractor
def card(payment):
    """Return the card as the key, so that each card has its own account."""
    return payment[0]


@wallaroo.state_computation("book", Account, outputs=("alerts",))
def book(payment, account):
    """Book a payment and return the new total, or emit the payment to the output "alerts"."""
    name, amount = payment
    if account.count >= KNOWN and amount * account.count > FACTOR * account.total:
        return wallaroo.output("alerts", payment)
    account.count += 1
    account.total += amount
    return f"{name} {account.total}"


@wallaroo.computation("describe")
def describe(payment):
    """Return the text of an alert."""
    return f"{payment[0]} refused {payment[1]}"


@wallaroo.encoder
def encode(text):
    """Return a text as a line."""
    return (text + "\n").encode()
