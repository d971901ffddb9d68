"""Click counts: how often users clicked; groups that join the counts to purchases, and that have the latest users."""

from datetime import timedelta

from wallaroo import goka


def count(ctx, message):
    ctx.set_value((ctx.value() or 0) + 1)


def report(ctx, item):
    ctx.emit("reports", ctx.key, f"{item} after {ctx.join(goka.group_table('click-counts'))} clicks")


def application_setup(args):
    counts = goka.define_group(
        "click-counts",
        goka.input("user-clicks", goka.String(), count),
        goka.persist(goka.Int64()),
    )
    buyers = goka.define_group(
        "buyers",
        goka.input("purchases", goka.String(), report),
        goka.join(goka.group_table("click-counts"), goka.Int64()),
        goka.output("reports", goka.String()),
    )
    lately = goka.define_group(
        "lately",
        goka.input("user-clicks", goka.String(), count),
        goka.persist(goka.Int64(), ttl=timedelta(seconds=3)),
    )
    return goka.application([args[1]], counts, buyers, lately, name="Clicks", start="start")
