"""The counts of an application's sources, steps and sinks, as metrics that Spark observes."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from wallaroo_runtime.plan import Plan
from wallaroo_runtime.plan.counter import COUNTERS, MESSAGES
from wallaroo_runtime.topology.model import Topology

COLUMN = "counts"  # of `OutputRows.java`


class Count(NamedTuple):
    """A count of a source, step or sink, as in `Applied.java`."""

    path: str
    name: str


def counts_of(plan: Plan, topology: Topology) -> dict[str, Count]:
    """Return the counts of all parts by the name of their metric, e.g. `history.timers_fired`.

    If several parts have one name, their path follows the name.
    """
    parts = list(topology.parts())
    names = Counter(part.name for part in parts)
    nodes = [node for stage in plan.stages for node in stage.nodes]
    found = dict[str, Count]()
    for part in parts:
        label = part.name if names[part.name] == 1 else f"{part.name} ({part.path})"
        mine = [node for node in nodes if node.path == part.path]
        more = (name for name, counter in COUNTERS.items() if any(map(counter.is_of, mine)))
        found |= {f"{label}.{name}": Count(part.path, name) for name in (*MESSAGES, *more)}
    return found


def observed(rows: DataFrame, observation: Observation | str, counts: Mapping[str, Count]) -> DataFrame:
    """Remove the rows that only have counts. Spark adds up these counts under the name of the observation."""
    sums = (F.coalesce(F.sum(F.col(COLUMN)[at]), F.lit(0)).alias(name) for at, name in enumerate(counts))
    return rows.observe(observation, *sums).where(F.col(COLUMN).isNull())
