"""The usable topology documents among the vectors: kept by hand in topologies/valid, their hashes computed."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

ZERO_HASH = "sha256:" + "0" * 64
Document = dict[str, Any]


def read(path: Path) -> Document:
    """Return the document of a file as it is before the hash of its program is computed."""
    document: Document = json.loads(path.read_text(encoding="utf-8"))
    document["workers"][0]["interface_hash"] = ZERO_HASH
    return document


FOLDER = Path(__file__).resolve().parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
VALID = {path.stem: read(path) for path in sorted(FOLDER.glob("*.json"))}


def state(name: str) -> Document:
    return {"name": name, "codec": "native", "key": {"kind": "single"}}


def changed(document: Document, *edits: Callable[[Document], Any]) -> Document:
    made = copy.deepcopy(document)
    for edit in edits:
        edit(made)
    return made


def put(value: Any, *path: str | int) -> Callable[[Document], None]:
    """Return an edit that sets the value at a path of keys and positions."""

    def edit(document: Document) -> None:
        at: Any = document
        for item in path[:-1]:
            at = at[item]
        at[path[-1]] = value

    return edit


def drop(*path: str | int) -> Callable[[Document], None]:
    """Return an edit that removes a property."""

    def edit(document: Document) -> None:
        at: Any = document
        for item in path[:-1]:
            at = at[item]
        del at[path[-1]]

    return edit


def moved(document: Document) -> None:
    document["workers"][0] |= {"language": "go", "command": ["/srv/word_count"], "components": []}


WORD_COUNT = VALID["word_count"]
SAME_INTERFACE: dict[str, Document] = {
    "word_count as it is": WORD_COUNT,
    "another address": changed(
        WORD_COUNT, put("::1", "pipelines", 0, "sources", 0, "host"), put(0, "pipelines", 0, "sinks", 0, "port")
    ),
    "another worker": changed(WORD_COUNT, moved),
    "another name": changed(WORD_COUNT, put("Word count", "name")),
    "another kind": changed(WORD_COUNT, put("computation", "pipelines", 0, "steps", 0, "kind")),
    "another policy": changed(VALID["policies"], put("dead_letter", "on_error")),
    "another limit": changed(WORD_COUNT, put(1, "pipelines", 0, "sources", 0, "max_message_bytes")),
}
