"""Declares the programs that host user code, as the topology document describes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Component:
    """Name and place of user code, as the front-end gives them: of a source, step, sink, state or partition function.

    Attributes:
        path: Path of the source, step or sink. State steps have more components, at `PATH/partition` and `PATH/state`.
        symbol: Name of the function, class or type.
        file: File of its declaration; empty if unknown.
        line: Line of its declaration; 0 if unknown.
        shape: Types of a state's fields by path, in the notation of the worker's language; None if unknown.
    """

    path: str
    symbol: str
    file: str = ""
    line: int = 0
    shape: Mapping[str, str] | None = field(default=None, hash=False)


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
        """Return the component at `path`, or None if the front-end recorded none."""
        return next((component for component in self.components if component.path == path), None)
