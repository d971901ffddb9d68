"""Sums over two topics, in a currency that a lookup converts; a visitor that writes and forgets small sums."""

from wallaroo import goka

RATES = "rates"


def add(ctx, amount):
    """Add an amount in the currency that a header names, else in euros; a message without a value ends the account."""
    if amount is None:
        ctx.delete()
        return
    rate = ctx.lookup(RATES, (ctx.headers.get("currency") or b"EUR").decode()) or 1
    ctx.set_value((ctx.value() or 0) + rate * amount)


def forget(ctx, metadata):
    """Write down and forget sums below that of the visit."""
    if ctx.value() < int(metadata):
        ctx.emit("forgotten", ctx.key, ctx.value())
        ctx.delete()


def application_setup(args):
    number = goka.Int64()
    group = goka.define_group(
        "sums",
        goka.inputs(["deposits", "payments"], number, add),
        goka.lookup(RATES, number),
        goka.persist(number),
        goka.output("forgotten", number),
        goka.visitor("forget", forget),
        nil_handling="process",
    )
    return goka.application([args[1]], group, name="Sums")
