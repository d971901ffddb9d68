"""Finds the parts of a document, even if the document does not fit the schema, so that rules can check them."""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.topology.schema import shown_json

Json = Mapping[str, Any]
NOT_NORMAL = "it is not in Unicode form NFC"


@dataclass(frozen=True, slots=True)
class Part:
    """A source, step or sink of the document.

    Attributes:
        kind: `sources`, `steps` or `sinks`.
        path: The path that follows from its position. Its property `path` should be the same.
    """

    kind: str
    path: str
    pointer: str
    value: Json

    def text(self, name: str) -> str:
        """Return a property that should be a string; empty if the property is missing or no string."""
        value = self.value.get(name)
        return value if isinstance(value, str) else ""

    def inputs(self) -> Iterator[tuple[int, str]]:
        """Yield position in the list of inputs, and path, of each input of the part."""
        return ((at, path) for at, path in enumerate(items_of(self.value, "inputs")) if isinstance(path, str))

    def object(self, name: str) -> Json:
        """Return a property that should be an object; empty if the property is missing or no object."""
        value = self.value.get(name)
        return value if isinstance(value, dict) else {}

    def state(self) -> Json:
        """Return the state of the part; empty if it has none."""
        return self.object("state")


@dataclass
class Index:
    """The parts of a document, with their pipelines, workers and components, in lists."""

    document: Json
    pipelines: list[tuple[str, Json]] = field(default_factory=list)
    workers: list[tuple[str, Json]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    components: dict[tuple[str, str], Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.workers = list(objects_of(self.document, "workers", ""))
        self.pipelines = list(objects_of(self.document, "pipelines", ""))
        for pointer, worker in self.workers:
            for _, component in objects_of(worker, "components", pointer):
                self.components[str(worker.get("name")), str(component.get("path"))] = component
        for pointer, pipeline in self.pipelines:
            for kind in ("sources", "steps", "sinks"):
                for place, value in objects_of(pipeline, kind, pointer):
                    self.parts.append(Part(kind, place.removeprefix("/pipelines/"), place, value))

    def finding(self, code: str, part: Part, more: str = "", component: str = "", **values: Any) -> Diagnostic:
        """Return a finding about a part, with the file and line of its user code if the front-end recorded them."""
        file, line = self._place(part, component)
        return Diagnostic.of(code, pointer=part.pointer + more, file=file, line=line, **values)

    def check_normal(self, part: Part, more: str, what: str, name: object) -> Iterator[Diagnostic]:
        """Check that a name is in NFC (Unicode's normal form). Ignore a name that is no text: the schema refuses it."""
        if isinstance(name, str) and not unicodedata.is_normalized("NFC", name):
            yield self.finding("T210", part, more, what=what, name=shown_json(name), reason=NOT_NORMAL)

    def placed(self, finding: Diagnostic) -> Diagnostic:
        """Return a finding with file and line of a part's user code. The finding's JSON pointer identifies the part."""
        at = f"{finding.pointer}/"
        part = next((part for part in self.parts if at.startswith(f"{part.pointer}/")), None)
        file, line = self._place(part) if part else ("", 0)
        return replace(finding, file=file, line=line)

    def _place(self, part: Part, component: str = "") -> tuple[str, int]:
        known = self.components.get((part.text("worker"), part.path + component), {})
        file, line = known.get("file"), known.get("line")
        return file if isinstance(file, str) else "", line if isinstance(line, int) else 0


def items_of(value: Json, name: str) -> list[Any]:
    """Return a property that should be a list; empty if the property is missing or no list."""
    items = value.get(name)
    return items if isinstance(items, list) else []


def objects_of(value: Json, name: str, pointer: str) -> Iterator[tuple[str, Json]]:
    """Yield pointer and value of each object in a property that should be a list of objects."""
    for number, item in enumerate(items_of(value, name)):
        if isinstance(item, dict):
            yield f"{pointer}/{name}/{number}", item
