"""Draws a topology as text for Mermaid."""

from collections.abc import Iterator

from wallaroo_runtime.topology.model import Part, Pipeline, Source, Step, Topology


def mermaid(topology: Topology) -> str:
    """Return the graph as a Mermaid flowchart. A thick arrow is a shuffle by key."""
    lines = ["flowchart LR"]
    for number, pipeline in enumerate(topology.pipelines):
        lines.append(f'  subgraph p{number}["{_mermaid_text(pipeline.name)}"]')
        for part in _parts(pipeline):
            start, end = ("([", "])") if not isinstance(part, Step) else ("[(", ")]") if part.state else ("[", "]")
            if part.kind == "output":
                start, end = ">", "]"
            lines.append(f'    {_id(part.path)}{start}"{_mermaid_text(_label(part))}"{end}')
        lines.append("  end")
    for source, target, shuffles in edges_of(topology):
        lines.append(f"  {_id(source)} {'==>' if shuffles else '-->'} {_id(target)}")
    return "\n".join(lines) + "\n"


def _parts(pipeline: Pipeline) -> Iterator[Part]:
    yield from pipeline.sources
    yield from pipeline.steps
    yield from pipeline.sinks


def _label(part: Part) -> str:
    if isinstance(part, Step):
        return f"{part.name} / {part.state.name}" if part.state else part.name
    return f"{part.name} {part.kind} {part.place}".rstrip()


def edges_of(topology: Topology) -> Iterator[tuple[str, str, bool]]:
    """Yield start and end of each edge of the graph, as paths, and whether the edge shuffles messages by key."""
    for part in topology.parts():
        for path in inputs_of(part):
            yield path, part.path, isinstance(part, Step) and part.state is not None


def inputs_of(part: Part) -> tuple[str, ...]:
    """Return the paths of the inputs of a part; empty for a source."""
    return () if isinstance(part, Source) else part.inputs


def _id(path: str) -> str:
    return "n" + path.replace("/", "_")


def _mermaid_text(text: str) -> str:
    # The only escapes inside quotes are HTML entities with # instead of &.
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
