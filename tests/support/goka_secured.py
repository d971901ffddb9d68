"""A group for a secured broker: all kinds of topics, reached as variables of the environment say."""

import os
from collections.abc import Sequence
from typing import Any

from wallaroo import goka

NAMES = ("security.protocol", "ssl.ca.location", "sasl.mechanism", "sasl.username", "sasl.password")


def ask(ctx: goka.Context, message: str) -> None:
    """Send what the tables have for the key to the loop."""
    ctx.loopback(ctx.key, f"{message}, joined {ctx.join('prices')}, looked up {ctx.lookup('prices', ctx.key)}")


def note(ctx: goka.Context, message: str) -> None:
    """Keep what came over the loop."""
    ctx.set_value(f"{message}, looped")


def application_setup(args: Sequence[str]) -> Any:
    """Return the application; its argument is a broker."""
    text = goka.String()
    graph = goka.define_group(
        "secured",
        goka.input("words", text, ask),
        goka.join("prices", text),
        goka.lookup("prices", text),
        goka.loop(text, note),
        goka.persist(text),
    )
    options = {f"kafka.{name}": os.environ[f"kafka_{name.replace('.', '_')}"] for name in NAMES}
    # A limit of records is none of librdkafka's settings, which lookups would refuse.
    return goka.application([args[1]], graph, options={**options, "kafka.max.request.size": "2000000"})
