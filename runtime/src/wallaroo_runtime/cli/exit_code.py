"""Chooses the exit code of a command that ends with an error."""

from wallaroo.diagnostic.diagnostic import DiagnosticError, Family, Kind
from wallaroo_runtime.errors import RUN, TOPOLOGY, USAGE, WORKER, RunError

INTERRUPTED = 130


def exit_code(error: DiagnosticError) -> int:
    """Return the exit code of an error: the one that a `RunError` has, else the one for this kind of error."""
    if isinstance(error, RunError):
        return error.exit_code
    if error.kind is Kind.USAGE:
        return USAGE
    family = error.diagnostics[0].family if error.diagnostics else Family.INTERNAL
    return {Family.TOPOLOGY: TOPOLOGY, Family.PLAN: TOPOLOGY, Family.WORKER: WORKER}.get(family, RUN)
