"""Keeps the balance of accounts: the key of a Kafka record is the account, so nothing else names it."""

import wallaroo

PARTITION_ABOVE, PARTITION_BELOW = 0, 2


def application_setup(args):
    payments = wallaroo.source("payments", wallaroo.DefaultKafkaSourceCLIParser(decode_amount))
    balances = payments.to(book).to_sink(wallaroo.DefaultKafkaSinkCLIParser(encode_balance))
    return wallaroo.build_application("Accounts", balances)


class Account:
    """What is known of one account."""

    balance = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode_amount(bs):
    return int(bs)


@wallaroo.state_computation("book", state=Account)
def book(amount, account):
    account.balance += amount
    return account.balance


@wallaroo.encoder
def encode_balance(balance):
    if balance < 0:
        return (str(balance), "below", PARTITION_BELOW)
    return (str(balance), None, PARTITION_ABOVE)
