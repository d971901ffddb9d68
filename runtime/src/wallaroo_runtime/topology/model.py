"""The topology document as values: what `load` gives when nothing is wrong with it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

STATE_KINDS = frozenset({"state_computation", "state_computation_multi"})


@dataclass(frozen=True, slots=True)
class Component:
    """The user's code behind one part of the topology.

    Attributes:
        path: Of the source, step or sink; with `/partition` or `/state` at the end for a state step's further parts.
        symbol: Name of the function, class or type.
        file: File of its declaration, empty when not known.
        line: Line of its declaration, 0 when not known.
    """

    path: str
    symbol: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Worker:
    """A program that hosts user code of one language."""

    name: str
    language: str
    sdk_version: str
    protocol_version: int
    command: tuple[str, ...]
    directory: str
    args: tuple[str, ...]
    call_deadline_ms: int
    interface_hash: str
    code_hash: str
    components: tuple[Component, ...]

    def component(self, path: str) -> Component | None:
        """Return the component at `path`, or None when the front-end recorded none."""
        return next((component for component in self.components if component.path == path), None)


@dataclass(frozen=True, slots=True)
class Framing:
    """How a byte stream is cut into messages; `header_bytes` is 0 unless `kind` is `worker`."""

    kind: str
    header_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Key:
    """How a message finds its state.

    Attributes:
        kind: `single` or `partition`.
        values: Keys declared up front, as their bytes.
        unknown: What a key outside `values` does: `create` or `dead_letter`.
    """

    kind: str
    values: tuple[bytes, ...] = ()
    unknown: str = "create"


@dataclass(frozen=True, slots=True)
class State:
    """State of a state step; steps with one name share it."""

    name: str
    codec: str
    key: Key


@dataclass(frozen=True, slots=True)
class Source:
    """A TCP listener whose bytes are cut into messages and decoded."""

    path: str
    name: str
    kind: str
    host: str
    port: int
    framing: Framing
    max_message_bytes: int
    codec: str
    worker: str
    on_error: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A computation; `state` is set exactly for the two state kinds."""

    path: str
    name: str
    kind: str
    inputs: tuple[str, ...]
    codec: str
    worker: str
    state: State | None = None
    on_error: str = ""


@dataclass(frozen=True, slots=True)
class Sink:
    """A TCP connection to which encoded messages are sent."""

    path: str
    name: str
    kind: str
    host: str
    port: int
    inputs: tuple[str, ...]
    worker: str
    on_error: str = ""


Part = Source | Step | Sink


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Sources, steps and sinks that were declared together."""

    name: str
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """A stream application that was found correct.

    Attributes:
        name: Name of the application.
        workers: The programs that host the user's code.
        pipelines: In the order of their declaration.
        document: The JSON document that this was read from; it must not be changed.
        on_error: What happens when user code fails, as for sources, steps and sinks: a policy, or empty.
    """

    name: str
    workers: tuple[Worker, ...]
    pipelines: tuple[Pipeline, ...]
    document: Mapping[str, Any] = field(repr=False, compare=False)
    on_error: str = ""

    def sources(self) -> Iterator[Source]:
        """Yield the sources of all pipelines, in document order."""
        return (source for pipeline in self.pipelines for source in pipeline.sources)

    def steps(self) -> Iterator[Step]:
        """Yield the steps of all pipelines, in document order."""
        return (step for pipeline in self.pipelines for step in pipeline.steps)

    def state_steps(self) -> Iterator[Step]:
        """Yield the steps with state, in document order."""
        return (step for step in self.steps() if step.state is not None)

    def sinks(self) -> Iterator[Sink]:
        """Yield the sinks of all pipelines, in document order."""
        return (sink for pipeline in self.pipelines for sink in pipeline.sinks)

    def parts(self) -> Iterator[Part]:
        """Yield all sources, then all steps, then all sinks: each after its inputs."""
        yield from self.sources()
        yield from self.steps()
        yield from self.sinks()

    def worker(self, name: str) -> Worker:
        """Return the worker of that name; it exists when a source, step or sink names it."""
        return next(worker for worker in self.workers if worker.name == name)

    def component(self, worker: str, path: str) -> Component | None:
        """Return the user's code behind `path`, or None when the front-end recorded none."""
        return self.worker(worker).component(path)
