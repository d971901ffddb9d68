"""Alerts of users whose account goes below zero; a generator makes the transactions, the state is the account."""

from collections import namedtuple

import wallaroo

Transaction = namedtuple("Transaction", ["number", "user", "amount"])
USERS = ["Fix", "Joyce", "Mia", "Noor"]
LAST = 120


def application_setup(args):
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    transactions = wallaroo.source("transactions", wallaroo.GenSourceConfig("transactions", Transactions))
    alerts = transactions.key_by(user_of).to(book)
    return wallaroo.build_application(
        "Alerts (stateful)", alerts.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_alert))
    )


class Transactions:
    """Makes each transaction from the one before, so that a restart goes on where it stood."""

    def initial_value(self):
        return Transaction(1, "Fix", 100)

    def apply(self, previous):
        if previous.number == LAST:
            return None
        number = previous.number + 1
        return Transaction(number, USERS[number * 7 % 4], previous.amount * 31 % 3001 - 1500)


class Account:
    """What a user has; class attributes are the values to begin with."""

    balance = 0
    is_overdrawn = False


@wallaroo.key_extractor
def user_of(data):
    return data.user


@wallaroo.state_computation("book", state=Account)
def book(data, state):
    was_overdrawn = state.is_overdrawn
    state.balance += data.amount
    state.is_overdrawn = state.balance < 0
    if state.is_overdrawn == was_overdrawn:
        return None
    return f"{data.user} {'below' if state.is_overdrawn else 'above'} zero at {data.number}: {state.balance}"


@wallaroo.encoder
def encode_alert(data):
    return data + "\n"
