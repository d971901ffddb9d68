"""The monitor's answers to HTTP requests."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic

JSON = "application/json"
Query = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an HTTP request.

    Attributes:
        body: The whole body.
        content_type: Content type of the body.
        status: HTTP status.
    """

    body: bytes
    content_type: str = JSON
    status: int = 200

    @classmethod
    def of(cls, value: Any, status: int = 200) -> "Answer":
        """Return an answer whose body is a value as JSON."""
        return cls(json.dumps(value, ensure_ascii=False).encode() + b"\n", JSON, status)

    @classmethod
    def error(cls, status: int, finding: Diagnostic) -> "Answer":
        """Return an answer whose body is an error as JSON."""
        return cls.of(finding.to_json(), status)


def limit_of(query: Query, usual: str, most: int) -> int | Answer:
    """Return the parameter `limit` of a request, from 1 to `most`, or the answer that it is none."""
    text = query.get("limit", [usual])[0]
    if text.isascii() and text.isdigit() and len(text) < 10 and 0 < int(text) <= most:
        return int(text)
    reason = f"the parameter limit is {text[:80]}; expected a number from 1 to {most}"
    return Answer.error(400, Diagnostic.of("R766", reason=reason))
