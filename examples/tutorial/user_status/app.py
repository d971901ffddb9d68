"""The two groups of Goka's introduction: click-count counts clicks, user-status joins the table of click-count.

wallaroo run app.py clicks    runs click-count
wallaroo run app.py status    runs user-status
wallaroo run app.py           runs both groups as one application
"""

from wallaroo import goka

BROKERS = ["127.0.0.1:9092"]
CLICK_TABLE = goka.group_table("click-count")


def count(ctx, message):
    """Count a click of a user."""
    ctx.set_value((ctx.value() or 0) + 1)


def describe(ctx, message):
    """Store the status of a user. For a message "@FRIEND", store how often that friend has clicked."""
    if message.startswith("@"):
        friend = message[1:]
        ctx.set_value(f"{friend} has clicked {ctx.lookup(CLICK_TABLE, friend) or 0} times")
    else:
        ctx.set_value(f"{message} after {ctx.join(CLICK_TABLE) or 0} clicks")


def reset(ctx, metadata):
    """Delete the count of a user, so that counting begins again."""
    ctx.delete()


clicks = goka.define_group(
    "click-count",
    goka.input("user-clicks", goka.String(), count),
    goka.persist(goka.Int64()),
    goka.visitor("reset", reset),
)
status = goka.define_group(
    "user-status",
    goka.input("user-status-updates", goka.String(), describe),
    goka.join(CLICK_TABLE, goka.Int64()),
    goka.lookup(CLICK_TABLE, goka.Int64()),
    goka.persist(goka.String()),
)


def application_setup(args):
    """Return an application with the groups that the arguments name, or with both groups."""
    groups = {"clicks": clicks, "status": status}
    return goka.application(BROKERS, *(groups[name] for name in args[1:] or groups))
