"""Balances with a factor that is joined, a name that is looked up, and a bonus over a loop; its brokers are nowhere."""

from wallaroo import goka


def deposit(ctx, amount):
    """Add a deposit, times the factor of its account; each fifth unit is worth a bonus."""
    ctx.set_value((ctx.value() or 0) + amount * (ctx.join("factors") or 1))
    ctx.emit("receipts", ctx.key, f"{ctx.value()} of {ctx.lookup('names', ctx.key) or 'nobody'}")
    if amount % 5 == 0:
        ctx.loopback(f"bonus of {ctx.key}", amount // 5)


def bonus(ctx, amount):
    """Add to the bonus of an account."""
    ctx.set_value((ctx.value() or 0) + amount)


def forget(ctx, metadata):
    """Delete a small balance."""
    if ctx.value() < int(metadata):
        ctx.delete()


def application_setup(args):
    number, text = goka.Int64(), goka.String()
    group = goka.define_group(
        "balances",
        goka.input("deposits", number, deposit),
        goka.loop(number, bonus),
        goka.join("factors", number),
        goka.lookup("names", text),
        goka.persist(number),
        goka.output("receipts", text),
        goka.visitor("forget", forget),
    )
    return goka.application(["127.0.0.1:1"], group, on_error="dead_letter")
