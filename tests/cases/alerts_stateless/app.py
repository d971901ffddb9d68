"""Alerts of single transactions that are too large; a generator makes the transactions."""

from collections import namedtuple

import wallaroo

Transaction = namedtuple("Transaction", ["number", "user", "amount"])
USERS = ["Fix", "Joyce", "Mia", "Noor"]
LAST = 120


def application_setup(args):
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]

    transactions = wallaroo.source("transactions", wallaroo.GenSourceConfig(Transactions()))
    alerts = transactions.to(check_transaction)
    return wallaroo.build_application(
        "Alerts (stateless)", alerts.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode_alert))
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


@wallaroo.computation("check transaction")
def check_transaction(data):
    if data.amount > 1000:
        return f"{data.user} deposit {data.number} {data.amount}"
    if data.amount < -1000:
        return f"{data.user} withdrawal {data.number} {-data.amount}"
    return None


@wallaroo.encoder
def encode_alert(data):
    return data + "\n"
