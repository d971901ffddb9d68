"""Loads the JSON Schema of a topology document, and formats values of documents for error messages."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def schema() -> Mapping[str, Any]:
    """Return the JSON Schema of topology documents."""
    text = resources.files(__package__).joinpath("topology.schema.json").read_text(encoding="utf-8")
    document: Mapping[str, Any] = json.loads(text)
    return document


def resolved(rule: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a rule of the schema. If the rule is a reference, return the rule to which it refers."""
    return schema()["$defs"][rule["$ref"].rsplit("/", 1)[1]] if "$ref" in rule else rule


class NotAnInteger:
    """A number with a fraction or an exponent, which no rule of the schema accepts."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def pointer_of(path: Any) -> str:
    """Return a path of keys and positions as a JSON pointer."""
    return "".join("/" + str(item).replace("~", "~0").replace("/", "~1") for item in path)


def shown_json(value: Any) -> str:
    """Return a value of a document as JSON for a message, cut at 80 characters."""
    text = value.text if isinstance(value, NotAnInteger) else json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else text[:79] + "…"
