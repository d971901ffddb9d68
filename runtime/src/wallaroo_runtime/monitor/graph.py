"""Arranges the graph of an application for a drawing: parts in columns, and edges between the parts."""

from collections.abc import Iterator
from typing import Any

from wallaroo_runtime.plan.graph import inputs_of
from wallaroo_runtime.topology.model import Part, Source, Step, Topology


def parts_of(topology: Topology) -> Iterator[dict[str, Any]]:
    """Yield each part of an application after its inputs. `column` is the length of the longest path from a source."""
    columns: dict[str, int] = {}
    pipelines: dict[str, str] = {}
    for pipeline in topology.pipelines:
        parts: tuple[Part, ...] = (*pipeline.sources, *pipeline.steps, *pipeline.sinks)
        pipelines |= dict.fromkeys((part.path for part in parts), pipeline.name)
    for part in topology.parts():
        columns[part.path] = max((columns.get(path, 0) + 1 for path in inputs_of(part)), default=0)
        is_step = isinstance(part, Step)
        yield {
            "path": part.path,
            "name": part.name,
            "pipeline": pipelines[part.path],
            "kind": part.kind,
            "role": "source" if isinstance(part, Source) else "step" if is_step else "sink",
            "place": "" if isinstance(part, Step) else part.place,
            "worker": part.worker,
            "state": part.state.name if isinstance(part, Step) and part.state else "",
            "column": columns[part.path],
        }
