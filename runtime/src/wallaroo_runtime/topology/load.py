"""Reads a topology document, and returns the topology or raises every finding at once."""

import json
from collections.abc import Mapping
from typing import Any

from wallaroo_runtime.errors import TOPOLOGY, RunError
from wallaroo_runtime.topology.check import check_meaning
from wallaroo_runtime.topology.index import Index
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.read import read
from wallaroo_runtime.topology.schema import NotAnInteger, shown_json
from wallaroo_runtime.topology.secret import without_secrets

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
MAX_FINDINGS = 200
VERSION = 1


def load(data: bytes) -> Topology:
    """Read a topology document, and check it as far as this needs no worker.

    Args:
        data: The document, as `wallaroo emit` prints it. Order of keys and spacing do not matter.

    Returns:
        The topology as frozen values.

    Raises:
        RunError: The document is wrong. Has every finding, sorted by pointer.
    """
    return load_document(parse(data))


def load_document(document: Any) -> Topology:
    """Check a parsed document and return it as values without secrets. For the rest see `load`."""
    document = without_secrets(document)
    version = document.get("topology_version", VERSION) if isinstance(document, dict) else VERSION
    if type(version) is not int or version != VERSION:
        raise RunError.of("T103", TOPOLOGY, pointer="/topology_version", version=shown_json(version))
    # It imports jsonschema, 3 MB, which a process without documents to check does not need.
    from wallaroo_runtime.topology.schema_validation import check_shape

    findings = list(check_shape(document, MAX_FINDINGS))
    if isinstance(document, dict):
        # The rules repeat findings about places whose shape is wrong. These are left out.
        wrong = {finding.pointer for finding in findings}
        index = Index(document)
        findings = [index.placed(finding) for finding in findings]
        findings += [finding for finding in check_meaning(index) if finding.pointer not in wrong]
    if findings:
        raise RunError(findings[: 2 * MAX_FINDINGS], TOPOLOGY)
    return read(document)


def parse(data: bytes) -> Any:
    """Parse JSON strictly: UTF-8, each key once, no NaN, no lone surrogates.

    Raises:
        RunError: T101 with the place of an error, T104 if the document is too large.
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        size = f"{len(data)} bytes"
        raise RunError.of("T104", TOPOLOGY, what="the document", size=size, limit=MAX_DOCUMENT_BYTES)
    try:
        text = data.decode("utf-8")
        document = json.loads(
            text, object_pairs_hook=_object, parse_float=NotAnInteger, parse_constant=_refuse_constant
        )
        if "\\ud" in text or "\\uD" in text:
            json.dumps(document, ensure_ascii=False, default=repr).encode("utf-8")
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]} at line {error.lineno}, column {error.colno}"
        raise RunError.of("T101", TOPOLOGY, reason=reason) from error
    except UnicodeDecodeError as error:
        raise RunError.of("T101", TOPOLOGY, reason=f"byte {error.start} is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise RunError.of("T101", TOPOLOGY, reason="a string has half of a surrogate pair") from error
    except RecursionError as error:
        raise RunError.of("T101", TOPOLOGY, reason="it is nested too deeply") from error
    except ValueError as error:
        raise RunError.of("T101", TOPOLOGY, reason=str(error)) from error
    return document


def _object(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        reason = f"key {shown_json(twice)} occurs twice in one object"
        raise ValueError(reason)
    return value


def _refuse_constant(name: str) -> Any:
    reason = f"{name} is not a JSON number"
    raise ValueError(reason)
