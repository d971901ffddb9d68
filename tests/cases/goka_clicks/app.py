"""Click counts: how often users clicked, and a second group that joins the counts to purchases."""

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
    return goka.application([args[1]], counts, buyers, name="Clicks", start="start")
