"""Writes a document in canonical form, and hashes its interface: all except workers and addresses."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.schema import resolved, schema

Json = Mapping[str, Any]


def ordered(value: Any, rule: Json) -> Any:
    """Return a part of a document in which the keys of objects are in the order of the schema."""
    rule = resolved(rule)
    if isinstance(value, list):
        return [ordered(item, rule.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    free = rule.get("additionalProperties")
    if isinstance(free, dict):
        return {name: value[name] for name in sorted(value)}
    properties = meant(value, rule).get("properties", {})
    return {name: ordered(value[name], properties[name]) for name in properties if name in value}


def meant(value: Json, rule: Json) -> Json:
    """Return the rule for an object: the alternative (`oneOf`) for its `kind` or keys, else the rule itself."""
    for branch in rule.get("oneOf", ()):
        properties = branch.get("properties", {})
        kind = properties.get("kind")
        if kind is None and value.keys() <= properties.keys():
            return dict(branch)
        if kind is not None and value.get("kind") in kind.get("enum", [kind.get("const")]):
            return dict(branch)
    return rule


def canonical_text(document: Json) -> str:
    """Return the document in canonical form, with its keys in fixed order and without `$schema`.

    Example:
        >>> print(canonical_text({"name": "é", "topology_version": 1, "pipelines": []}), end="")
        {
          "topology_version": 1,
          "name": "é",
          "pipelines": []
        }
    """
    content = {name: value for name, value in document.items() if name != "$schema"}
    return json.dumps(ordered(content, schema()), ensure_ascii=False, indent=2) + "\n"


def interface(document: Json) -> Json:
    """Return the document without workers and addresses: its steps, kinds and names."""
    pipelines = []
    for pipeline in document["pipelines"]:
        ends = {kind: list(map(_without_address, pipeline[kind])) for kind in ("sources", "sinks")}
        pipelines.append({**pipeline, **ends})
    head = {name: document[name] for name in ("topology_version", "name", "on_error") if name in document}
    return {**head, "pipelines": pipelines}


def _without_address(end: Json) -> Json:
    return {name: value for name, value in end.items() if name not in ("host", "port", "cookie", "brokers", "options")}


def interface_hash(topology: Topology) -> str:
    """Return the interface hash of a topology, as the specification defines it."""
    text = canonical_text(interface(topology.document))
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()
