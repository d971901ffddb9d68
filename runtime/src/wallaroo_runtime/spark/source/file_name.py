r"""Refuses names of files that Spark's sources would read twice, or leave out without a message.

Spark takes a path with one of `{ } [ ] * ? \` as a pattern, even the path of a file that it has found itself. For each
such file in a micro-batch, it reads all files of the micro-batch once more. Hadoop's local file system cannot read a
file with a colon in its name.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import RUN, USAGE, RunError
from wallaroo_runtime.spark.failure.translate import AGAIN
from wallaroo_runtime.spark.machine.hadoop import HadoopDirectory, spark_path
from wallaroo_runtime.topology.model import SparkSource, Topology
from wallaroo_runtime.topology.secret import value_of

FORMATS = ("avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml")
PATTERN, SEPARATOR = "{}[]*?\\", "\0"


def is_pattern(path: str) -> bool:
    """Say whether Spark takes a path as a pattern."""
    return any(character in PATTERN for character in path)


def file_sources(topology: Topology) -> list[SparkSource]:
    """Return the sources of a topology that read files."""
    return [each for each in topology.sources() if isinstance(each, SparkSource) and each.format.lower() in FORMATS]


def check_names(session: SparkSession, topology: Topology) -> Iterator[Diagnostic]:
    """Yield a warning (R801) for each source whose path is a pattern without a matching file.

    Raises:
        RunError: R716 if a file or directory exists whose name Spark would take as a pattern.
    """
    for source, name, path, files in _paths(session, topology):
        if not is_pattern(value_of(name)):
            continue
        if files.exists(path):
            reason = "Spark reads it as a pattern, because it has one of the signs { } [ ] * ? \\"
            fix = "rename it, or give a symbolic link whose path has none of these signs"
            raise RunError.of("R716", USAGE, what=f'path {name} of source "{source.name}"', reason=reason, fix=fix)
        if not len(files.globStatus(path) or ()):
            yield Diagnostic.of("R801", source=source.name, path=name)


def unmatched(session: SparkSession, topology: Topology) -> dict[str, Diagnostic]:
    """Return a finding (R801) for each source whose path is missing, or is a pattern without a matching file now.

    A run reads on without an error when the directory of a source is removed or unmounted. If the file system does not
    answer, nothing is returned: the query reports this.
    """
    try:
        return {
            source.path: Diagnostic.of("R801", source=source.name, path=name)
            for source, name, path, files in _paths(session, topology)
            if not len(files.globStatus(path) or ())
        }
    except (Py4JError, ConnectionError):
        return {}


def _paths(session: SparkSession, topology: Topology) -> Iterator[tuple[SparkSource, str, Any, Any]]:
    """Yield each source that reads files, its option `path`, and Hadoop's objects for path and file system."""
    jvm: Any = session.sparkContext._jvm
    configuration = session.sparkContext._jsc.hadoopConfiguration()
    for source in file_sources(topology):
        name = next((value for key, value in source.options.items() if key.lower() == "path"), "")
        if value_of(name):
            path = jvm.org.apache.hadoop.fs.Path(value_of(name))
            yield source, name, path, path.getFileSystem(configuration)


def forget_renamed(session: SparkSession, checkpoint: str) -> None:
    """Remove from Spark's last planned micro-batch the missing files whose names Spark takes as patterns.

    Users rename such files because a run refuses them. Spark skips a missing file. But if its name is a pattern, Spark
    would still read the other files twice.
    """
    directory = HadoopDirectory(session, spark_path(checkpoint))
    jvm: Any = session.sparkContext._jvm
    configuration = session.sparkContext._jsc.hadoopConfiguration()

    def is_there(line: str) -> bool:
        url = _url(line)
        if not is_pattern(unquote(url)):
            return True
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(url))
        return bool(path.getFileSystem(configuration).exists(path))

    for source in directory.names("sources"):
        plans = [name for name in directory.names(f"sources/{source}") if name.isdecimal()]
        if plans:
            name = f"sources/{source}/{max(plans, key=int)}"
            version, *lines = (directory.read(name) or b"").decode("utf-8").split("\n")
            left = [line for line in lines if is_there(line)]
            if left and left != lines:
                directory.write(name, "\n".join([version, *left]).encode("utf-8"))


def _url(line: str) -> str:
    """Return the URL of the file that a line of Spark's plan names; empty if the line is of another kind of source."""
    entry = json.loads(line) if line.startswith("{") else {}
    return str(entry.get("path", "")) if "timestamp" in entry else ""


def check_batch(session: SparkSession) -> None:
    """Refuse the micro-batch that is about to begin if Spark would read its files wrongly.

    Raises:
        RunError: R611, see `check_files`.
    """
    for location in _locations(session):
        check_files(location.rootPaths().mkString(SEPARATOR).split(SEPARATOR), location.inputFiles)


def _locations(session: SparkSession) -> Iterator[Any]:
    """Yield Spark's object for the files of each source in the running micro-batch."""
    for query in session.streams.active:
        leaves = query._jsq.streamingQuery().lastExecution().analyzed().collectLeaves()
        nodes = [leaves.apply(number) for number in range(leaves.size())]
        relations = [leaf.relation() for leaf in nodes if leaf.getClass().getSimpleName() == "LogicalRelation"]
        for relation in relations:
            if relation.getClass().getSimpleName() == "HadoopFsRelation":
                yield relation.location()


def check_files(paths: Sequence[str], present: Callable[[], Sequence[str]]) -> None:
    """Refuse the files of one source in a micro-batch if Spark would read them wrongly.

    Args:
        paths: The paths that Spark has planned.
        present: Returns the URLs of the existing files, each as often as Spark reads the file.

    Raises:
        RunError: R611 with the first such file.
    """
    colons = [path for path in paths if path.startswith("file:") and ":" in path.rpartition("/")[2]]
    if not colons and len(set(paths)) == len(paths):
        return
    there = list(present())
    urls = [unquote(url) for url in there]
    if colon := next((path for path in colons if path.rpartition("/")[2] in {u.rpartition("/")[2] for u in urls}), ""):
        raise _refused(colon, "Hadoop cannot read a file with a colon in its name", "rename it, e.g. with - for :")
    if len(set(there)) < len(there):
        odd = next((url for url in urls if is_pattern(url)), next(filter(is_pattern, paths)))
        reason = "Spark reads files twice where the path of one has { } [ ] * ? or \\"
        raise _refused(odd, reason, "rename it, or its directory")


def _refused(path: str, reason: str, fix: str) -> RunError:
    return RunError.of("R611", RUN, reason=f"{reason}: {path.removeprefix('file:')}", fix=f"{fix}; {AGAIN}")
