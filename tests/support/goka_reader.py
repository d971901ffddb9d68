"""A group in Python that joins and looks up a table of another system."""

from collections.abc import Sequence
from typing import Any

from wallaroo import goka


def application_setup(args: Sequence[str]) -> Any:
    """Return the application; its arguments are a broker, the group, the input and the table."""
    broker, group, topic, table = args[1:]

    def ask(ctx: goka.Context, message: str) -> None:
        about = message.removeprefix("about ")
        ctx.set_value(f"joined {ctx.join(table)}, looked up {ctx.lookup(table, about)}")

    graph = goka.define_group(
        group,
        goka.input(topic, goka.String(), ask),
        goka.join(table, goka.Int64()),
        goka.lookup(table, goka.Int64()),
        goka.persist(goka.String()),
    )
    return goka.application([broker], graph)
