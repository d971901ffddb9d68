"""Click counts with `wallaroo.goka`: how often users clicked, and a second group that joins the counts to purchases."""

import sys

from wallaroo import goka
from wallaroo.application import Application

CLICKS, PURCHASES, REPORTS = "user-clicks", "purchases", "reports"


def count(ctx: goka.Context, message: str) -> None:
    """Count the clicks of a user."""
    ctx.set_value((ctx.value() or 0) + 1)


def report(ctx: goka.Context, item: str) -> None:
    """Write down how often the buyer of something had clicked."""
    ctx.emit(REPORTS, ctx.key, f"{item} after {ctx.join(goka.group_table('click-counts'))} clicks")


COUNTS = goka.define_group(
    "click-counts",
    goka.input(CLICKS, goka.String(), count),
    goka.persist(goka.Int64()),
)
BUYERS = goka.define_group(
    "buyers",
    goka.input(PURCHASES, goka.String(), report),
    goka.join(goka.group_table("click-counts"), goka.Int64()),
    goka.output(REPORTS, goka.String()),
)


def application_setup(args: list[str]) -> Application:
    """Return both groups; the argument is a broker."""
    return goka.application([args[1] if len(args) > 1 else "127.0.0.1:9092"], COUNTS, BUYERS, start="start")


if __name__ == "__main__":
    with goka.Emitter([sys.argv[1]], CLICKS, goka.String()) as emitter:
        for user in sys.argv[2:]:
            emitter.emit(user, "clicked")
