"""Messages between users: spammers are found and blocked, and what is left is delivered to its receivers."""

from wallaroo import goka

MESSAGES, RECEIVED, BLOCKED = "messages", "received", goka.group_table("blocker")
LIMIT = 3


def block(ctx, command):
    """Block or unblock a user."""
    if command == "block":
        ctx.set_value("blocked", headers={"by": b"detector"})
    else:
        ctx.delete()


def count(ctx, message):
    """Count what a user has sent; too much of it is the detector's own message to itself."""
    sent = (ctx.value() or 0) + 1
    ctx.set_value(sent)
    if sent == LIMIT:
        ctx.loopback(ctx.key, "too many")


def accuse(ctx, reason):
    """Have a user blocked, and count from 0 again."""
    ctx.set_value(0)
    ctx.emit("commands", ctx.key, "block", headers={"reason": reason.encode()})


def deliver(ctx, message):
    """Pass a message `RECEIVER TEXT` on, unless its sender is blocked."""
    receiver, _, text = message.partition(" ")
    if not receiver or not text:
        ctx.fail(f"message {message!r} has no receiver")
    if ctx.join(BLOCKED) is None:
        ctx.emit(RECEIVED, receiver, f"{ctx.key}: {text}", headers={"from": ctx.key.encode()})


def application_setup(args):
    text = goka.String()
    groups = (
        goka.define_group("blocker", goka.input("commands", text, block), goka.persist(text)),
        goka.define_group(
            "detector",
            goka.input(MESSAGES, text, count),
            goka.loop(text, accuse),
            goka.persist(goka.Int64()),
            goka.output("commands", text),
        ),
        goka.define_group(
            "delivery", goka.input(MESSAGES, text, deliver), goka.join(BLOCKED, text), goka.output(RECEIVED, text)
        ),
    )
    return goka.application([args[1]], *groups, name="Messaging", on_error="dead_letter")
