"""The group of `goka_move` in Python; arguments are a broker, the topics with commas between, and the group."""

from collections.abc import Sequence
from typing import Any

from wallaroo import goka


def count(ctx: goka.Context, message: str) -> None:
    """Count a message, or take its key out of the table."""
    if message == "delete":
        ctx.delete()
        return
    ctx.set_value((ctx.value() or 0) + 1)
    if message == "again":
        ctx.loopback(ctx.key, "click")


def application_setup(args: Sequence[str]) -> Any:
    """Return the application."""
    broker, topics, group = args[1:]
    graph = goka.define_group(
        group,
        goka.inputs(topics.split(","), goka.String(), count),
        goka.loop(goka.String(), count),
        goka.persist(goka.Int64()),
    )
    return goka.application([broker], graph)
