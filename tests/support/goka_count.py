"""The counting group of `goka_count` in Python; arguments are a broker, the topic and the group."""

from collections.abc import Sequence
from typing import Any

from wallaroo import goka


def count(ctx: goka.Context, message: str) -> None:
    """Count a click."""
    ctx.set_value((ctx.value() or 0) + 1)


def application_setup(args: Sequence[str]) -> Any:
    """Return the application."""
    broker, topic, group = args[1:]
    graph = goka.define_group(group, goka.input(topic, goka.String(), count), goka.persist(goka.Int64()))
    return goka.application([broker], graph)
