"""Sends errors of a service to its caller: as JSON in the trailing metadata of a call."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic

FAILURES_KEY = "wallaroo-failures-bin"
MAX_BYTES = 6000
# The texts of a finding that is too long are cut to these lengths: 970 characters, each of at most 6 bytes in JSON.
_SHORT = {"message": 600, "fix": 230, "pointer": 70, "file": 70}


def pack_failures(diagnostics: Iterable[Diagnostic]) -> bytes:
    """Return diagnostics as bytes for the metadata of a call: as many as fit, but at least the first."""
    packed: list[dict[str, Any]] = []
    for finding in diagnostics:
        failure = {name: _whole(value) if isinstance(value, str) else value for name, value in asdict(finding).items()}
        if len(_bytes([*packed, failure])) > MAX_BYTES:
            failure |= {name: failure[name][:characters] for name, characters in _SHORT.items()} | {"traceback": ""}
        if packed and len(_bytes([*packed, failure])) > MAX_BYTES:
            break
        packed.append(failure)
    return _bytes(packed)


def read_failures(data: bytes) -> list[Diagnostic]:
    """Return the diagnostics that `pack_failures` has packed; empty if the bytes are something else."""
    try:
        return [Diagnostic.from_json(each) for each in json.loads(data)]
    except (ValueError, TypeError):
        return []


def _bytes(failures: list[dict[str, Any]]) -> bytes:
    return json.dumps(failures, ensure_ascii=False).encode()


def _whole(text: str) -> str:
    """Return a text with its lone surrogates escaped, since UTF-8 has no bytes for them."""
    return text.encode("utf-8", "backslashreplace").decode()
