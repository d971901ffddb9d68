"""Two groups for values of any size. A message `WHERE SIZE` writes SIZE bytes there; others are counted."""

from collections.abc import Sequence
from typing import Any

from wallaroo import goka

OUT, TIGHT = "large-out", "large-tight"


def write(ctx: goka.Context, message: str) -> None:
    """Do what a message to the first group says."""
    where, _, size = message[:20].partition(" ")
    filling = "x" * int(size) if size.isdecimal() else ""
    if where in (OUT, TIGHT):
        ctx.emit(where, ctx.key, filling)
    elif where == "table":
        ctx.set_value(filling)
    elif where == "loop":
        ctx.loopback(ctx.key, filling)
    elif where == "read":
        ctx.set_value(str(len(message)))
    else:
        ctx.set_value(str(int(ctx.value() or "0") + 1))


def looped(ctx: goka.Context, message: str) -> None:
    """Keep how much came over the loop."""
    ctx.set_value(f"looped {len(message)}")


def joined(ctx: goka.Context, message: str) -> None:
    """Report how much the first group's table has, joined and looked up."""
    table = goka.group_table("large")
    sizes = [len(value or "") for value in (ctx.join(table), ctx.lookup(table, ctx.key))]
    ctx.emit(OUT, ctx.key, str(sizes))


def application_setup(args: Sequence[str]) -> Any:
    """Return the application; its argument is a broker."""
    text = goka.String()
    first = goka.define_group(
        "large",
        goka.input("large-in", text, write),
        goka.loop(text, looped),
        goka.persist(text),
        goka.output(OUT, text),
        goka.output(TIGHT, text),
    )
    table = goka.group_table("large")
    second = goka.define_group(
        "asking",
        goka.input("large-ask", text, joined),
        goka.join(table, text),
        goka.lookup(table, text),
        goka.output(OUT, text),
    )
    return goka.application([args[1]], first, second, on_error="dead_letter", start="start")
