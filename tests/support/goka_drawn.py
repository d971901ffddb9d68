"""Groups that a file describes, as an application. What callbacks do is in the messages.

A table has for each key a sum, which does not depend on their order, and what the last question saw of others.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wallaroo import goka

KEYS = ("", "a", "b", "né", "user-1")


def total(value: Any) -> int:
    """Return the sum that a table has for a key."""
    return value[0] if value else 0


def perform(ctx: Any, actions: Any, group: Any) -> None:
    """Do what a message says; what the group does not declare is left out."""
    for name, *rest in actions:
        added, seen = ctx.value() or (0, [])
        if name == "add":
            ctx.set_value([added + rest[0], seen])
        elif name == "ask":
            joined = [total(ctx.join(table)) for table in group.joins]
            ctx.set_value([added, joined + [total(ctx.lookup(table, key)) for table in group.lookups for key in KEYS]])
        elif name == "loop" and group.has_loop:
            ctx.loopback(KEYS[rest[0]], rest[1])
        elif name == "emit" and rest[0] in group.outputs:
            ctx.emit(rest[0], KEYS[rest[1]], rest[2])


class Described:
    """A group as the file has it."""

    def __init__(self, described: dict[str, Any]) -> None:
        self.name: str = described["name"]
        self.inputs: list[str] = described["inputs"]
        self.outputs: list[str] = described["outputs"]
        self.joins: list[str] = described["joins"]
        self.lookups: list[str] = described["lookups"]
        self.has_loop: bool = described["has_loop"]

    def graph(self) -> goka.GroupGraph:
        """Return what Goka calls the group's graph."""

        def callback(ctx: goka.Context, actions: Any) -> None:
            perform(ctx, actions, self)

        codec = goka.Json()
        edges = [
            *goka.inputs(self.inputs, codec, callback),
            *(goka.output(topic, codec) for topic in self.outputs),
            *(goka.join(table, codec) for table in self.joins),
            *(goka.lookup(table, codec) for table in self.lookups),
            goka.persist(codec),
        ]
        return goka.define_group(self.name, edges, *([goka.loop(codec, callback)] if self.has_loop else []))


def application_setup(args: Sequence[str]) -> Any:
    """Return the application; arguments are a broker, the file, and the names of groups, none for all."""
    described = [Described(each) for each in json.loads(Path(args[2]).read_text(encoding="utf-8"))]
    graphs = [each.graph() for each in described if each.name in args[3:] or not args[3:]]
    return goka.application([args[1]], *graphs, start="start")
