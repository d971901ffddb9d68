"""Explains why a topology document does not fit its program: lists the steps in which the two differ."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from wallaroo.diagnostic.diagnostic import Diagnostic, Kind
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan.change import compare
from wallaroo_runtime.program.app import resolve
from wallaroo_runtime.program.emit import emit
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.worker import Worker

MAX_LINES = 20


def explained(error: RunError, topology: Topology) -> RunError:
    """Add the differing steps to findings of an error: to those about a document that does not fit its program.

    The worker's program is run once more, in emit mode, to get its declaration. If that fails, the finding has the
    reason.
    """
    findings = [_explained(finding, topology) for finding in error.diagnostics]
    return RunError(findings, error.exit_code)


@contextmanager
def explaining(topology: Topology) -> Iterator[None]:
    """Add the differing steps to the errors of a `with` block, as `explained` does."""
    try:
        yield
    except RunError as error:
        raise explained(error, topology) from error


def _explained(finding: Diagnostic, topology: Topology) -> Diagnostic:
    worker = next((worker for worker in topology.workers if f'"{worker.name}"' in finding.message), None)
    if finding.kind is not Kind.OTHER_APPLICATION or worker is None or finding.traceback:
        return finding
    return replace(finding, traceback="\n".join(_differences(topology, worker)))


def _differences(topology: Topology, worker: Worker) -> list[str]:
    """Return a line for each part in which the topology differs from the worker's current program."""
    target = worker.command[-1]
    try:
        program = load_document(emit(resolve(target), worker.args))
    except RunError as error:
        return [f"{target} does not say what it declares: {error.diagnostics[0].message}"]
    lines = [change.text for change in compare(program, topology) if change.is_interface]
    if not lines:
        return [f"{target} declares what the document says; the document was emitted by another program"]
    more = [f"and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
    return [f"from what {target} declares to the document:", *lines[:MAX_LINES], *more]
