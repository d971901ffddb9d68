"""Sends errors of a service to its caller: as `Failures` in the trailing metadata of a call."""

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import DecodeError

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.service._proto import service_pb2 as pb

FAILURES_KEY = "wallaroo-failures-bin"
MAX_BYTES = 6000
# The texts of a finding that is too long are cut to these lengths: 1,450 characters of at most 4 bytes each.
_SHORT = {"message": 900, "fix": 350, "pointer": 100, "file": 100}


def pack_failures(diagnostics: Iterable[Diagnostic]) -> bytes:
    """Return diagnostics as bytes for the metadata of a call: as many as fit, but at least the first."""
    packed = pb.Failures()
    for finding in diagnostics:
        failure = _failure(finding)
        if packed.ByteSize() + failure.ByteSize() > MAX_BYTES - 8:
            failure = _shortened(failure)
        if packed.failures and packed.ByteSize() + failure.ByteSize() > MAX_BYTES - 8:
            break
        packed.failures.append(failure)
    data: bytes = packed.SerializeToString()
    return data


def read_failures(data: bytes) -> list[Diagnostic]:
    """Return the diagnostics that `pack_failures` has packed; empty if the bytes are something else."""
    try:
        failures = pb.Failures.FromString(data).failures
    except DecodeError:
        return []
    return [
        Diagnostic(each.code, each.message, each.fix, each.pointer, each.file, each.line, each.traceback)
        for each in failures
    ]


def _failure(finding: Diagnostic) -> pb.Failure:
    fields: dict[str, Any] = {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in finding.to_json().items()
    }
    return pb.Failure(**fields)


def _shortened(failure: pb.Failure) -> pb.Failure:
    texts = {name: getattr(failure, name)[:characters] for name, characters in _SHORT.items()}
    return pb.Failure(code=failure.code, line=failure.line, **texts)
