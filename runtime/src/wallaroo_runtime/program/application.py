"""Loads the topology of an application: from a program's front-end, or from a document."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.spark_format import DATAFRAME
from wallaroo_runtime.archive.archive import Archive, read_archive
from wallaroo_runtime.errors import TOPOLOGY, USAGE, RunError, findings_in, other_interface
from wallaroo_runtime.program.app import AppKind, resolve
from wallaroo_runtime.program.emit import emit, say_nothing
from wallaroo_runtime.topology.canonical import interface_hash
from wallaroo_runtime.topology.load import MAX_DOCUMENT_BYTES, load_document, parse
from wallaroo_runtime.topology.model import SparkSink, SparkSource, TcpSink, Topology
from wallaroo_runtime.topology.override import BROKERS, override, parse_brokers, with_brokers
from wallaroo_runtime.topology.secret import declare

IN_A_JOB = (
    "write a job that calls `load(APP).apply(SOURCE=DATAFRAME)` of wallaroo_runtime.dataframe; run the job instead"
)
BROKERS_END = "_BROKERS"  # names of all environment variables with brokers end so
PORT = re.compile(r":([0-9]{1,5})(?=,|\Z)")


class Application(NamedTuple):
    """The application that the user named, read and checked.

    Attributes:
        path: The file or directory that the user named.
        archive: The archive with its workers, if the application is an archive.
    """

    topology: Topology
    path: Path
    archive: Archive | None = None


def load_application(
    app: str, args: Sequence[str], inputs: str, outputs: str, tell: Callable[[str], None] = say_nothing
) -> Application:
    """Return an application: its topology, with its path and archive.

    Args:
        app: A Python file or module, a Go package directory, a worker binary, a topology file, or an archive.
        args: Arguments of the application's own command line.
        inputs: The value of `--in`. A program reads this option itself; in a document it overrides addresses of
            sources.
        outputs: The value of `--out`, with the same effect for sinks.
        tell: Called with a text before work that may take seconds.

    Raises:
        RunError: R609 if there is no such application; every finding if it is not correct; R655 if an archive cannot be
            used; T211 if brokers in the environment are wrong.
    """
    if brokers := os.environ.get(BROKERS):  # check it early, since Goka's groups read it when they are declared
        parse_brokers(BROKERS, brokers)
    resolved = resolve(app)
    path = Path(resolved.path)
    if resolved.kind not in (AppKind.TOPOLOGY, AppKind.ARCHIVE):
        return Application(_with_other_brokers(load_document(declare(emit(resolved, args, tell=tell)))), path)
    archive = read_archive(path) if resolved.kind is AppKind.ARCHIVE else None
    content = archive.topology if archive else read_file(path)
    with findings_in(app):
        declared = load_document(declare(parse(content)))
    topology = _with_other_brokers(override(declared, inputs, outputs))
    check_interface(topology)
    return Application(topology, path, archive)


def _with_other_brokers(topology: Topology) -> Topology:
    """Return the topology with other addresses of Kafka's brokers, if environment variables name some."""
    return with_brokers(topology, os.environ) if any(name.endswith(BROKERS_END) for name in os.environ) else topology


def unused_addresses(topology: Topology, inputs: str, outputs: str, *, is_packed: bool = False) -> list[Diagnostic]:
    """Return a finding (R743) for `--in` or `--out` if the program has ignored the option.

    That is so if the program has declared none of the ports in the option's value, or if the value has no port.

    Args:
        topology: Topology that the program has declared.
        inputs: The value of `--in`.
        outputs: The value of `--out`.
        is_packed: Whether the program becomes an archive, whose addresses can be replaced when it runs.
    """
    findings = []
    for option, text, what in (("--in", inputs, "sources"), ("--out", outputs, "sinks")):
        ends = [end for pipeline in topology.document["pipelines"] for end in pipeline[what] if "host" in end]
        ports = {int(port) for port in PORT.findall(text)}
        if text and ports.isdisjoint(end["port"] for end in ends):
            places = ", ".join(f"{end['host']}:{end['port']}" for end in ends) or f"its {what}, which have no address"
            other = f"give {option} when the archive runs" if is_packed else f"leave {option} out"
            fix = f"let the program take its addresses from its arguments, or {other}"
            findings.append(Diagnostic.of("R743", option=option, places=places, fix=fix))
    return findings


def check_runnable(topology: Topology) -> None:
    """Refuse a topology that a run cannot serve: it has DataFrames (only for PySpark jobs), or a sink without a port.

    Raises:
        RunError: P303 or T211, with a finding for each such source or sink.
    """
    findings = []
    for part in (*topology.sources(), *topology.sinks()):
        if isinstance(part, SparkSource | SparkSink) and part.format == DATAFRAME:
            what = f'DataFrame "{part.name}" outside of a PySpark job'
            findings.append(Diagnostic.of("P303", path=part.path, what=what, fix=IN_A_JOB))
    for sink in topology.sinks():
        if isinstance(sink, TcpSink) and not sink.port:
            reason = f'sink "{sink.name}" needs the port of its receiver'
            findings.append(Diagnostic.of("T211", what="sink", value=sink.place, reason=reason))
    if findings:
        raise RunError(findings, TOPOLOGY)


def read_file(path: Path) -> bytes:
    """Return the content of a topology file, at most one byte more than a document may have.

    Raises:
        RunError: R616 if the file cannot be read.
    """
    try:
        if not path.is_file():  # opening a FIFO would wait for a writer forever
            reason = "it is not a file" if path.exists() else "there is no such file"
            raise RunError.of("R616", USAGE, path=path, done="read", reason=reason)
        with path.open("rb") as file:
            return file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise RunError.of("R616", USAGE, path=path, done="read", reason=error.strerror or str(error)) from error


def check_interface(topology: Topology) -> None:
    """Refuse a document whose pipelines were changed after a worker's front-end wrote it.

    Raises:
        RunError: W403 for each such worker.
    """
    expected = interface_hash(topology)
    findings = [
        other_interface(worker.name, worker.interface_hash, expected, pointer=f"/workers/{number}/interface_hash")
        for number, worker in enumerate(topology.workers)
        if worker.interface_hash != expected and not topology.is_library(worker.name)
    ]
    if findings:
        raise RunError(findings, TOPOLOGY)
