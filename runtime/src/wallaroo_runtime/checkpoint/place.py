"""What a changed program does with results that have left and whose input Spark has not committed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.checkpoint.ahead import repeated
from wallaroo_runtime.checkpoint.compatible import is_other_program, listed
from wallaroo_runtime.checkpoint.directory import SPARK
from wallaroo_runtime.checkpoint.integrity import SparkFiles
from wallaroo_runtime.checkpoint.manifest import REALTIME, LocalDirectory, mode_of, read_manifest
from wallaroo_runtime.checkpoint.spark_folder import plan_of
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan.change import Change
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.match import match_parts
from wallaroo_runtime.plan.origin import is_kept
from wallaroo_runtime.plan.port import Ports, kept_ports
from wallaroo_runtime.storage.outbox.log import Published, read_base
from wallaroo_runtime.storage.outbox.written import read_written
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

Found = tuple[Diagnostic | None, str]
ELSEWHERE = "its gateway or egress is remote: after a kill a run"
PUBLISHED = "they stay, this program runs its messages again, and what it makes of them goes to states alone"
WRITTEN = "sinks that Spark writes keep them; states and other sinks get what this program makes of its messages"
AHEAD = "results have left whose input Spark has not committed, as after a kill or R611"


def keeps_places(manifest: Mapping[str, Any], topology: Topology) -> bool:
    """Return whether all that both programs have gives its results in the same places."""
    before = load_document(manifest["topology"])
    matched = match_parts(before, topology)
    windows = {step.path: step.window for step in before.steps()}
    if any(step.window != windows.get(matched.get(step.path, ""), step.window) for step in topology.steps()):
        return False  # its results would belong to other messages or ticks
    plan = compile_topology(
        topology,
        shuffle_partitions=manifest["shuffle_partitions"],
        buckets_per_partition=manifest["buckets_per_partition"],
        ports=kept_ports(before, Ports.from_json(manifest), topology),
    )
    return is_kept(plan_of(manifest), plan, matched)


def refused(path: object, left: str, changes: Sequence[Change]) -> RunError:
    """Return an R623: what is left must be processed by the old program."""
    return RunError.of("R623", path=path, left=left, reason=listed([each for each in changes if each.is_interface]))


def repeated_messages(messages: Sequence[int]) -> Diagnostic:
    """Return an R790: a changed program makes results of these messages again that have left."""
    return Diagnostic.of("R790", first=messages[0], last=messages[-1])


def repeated_batch(batch: int, *, is_published: bool) -> Diagnostic:
    """Return an R754: a changed program runs a micro-batch again of which something has left.

    Args:
        is_published: Whether all of it counts; else sinks of Spark have it alone.
    """
    return Diagnostic.of("R754", batch=batch, kept=PUBLISHED if is_published else WRITTEN)


def find_repeated(path: Path, topology: Topology, changes: Sequence[Change], *, is_in_use: bool) -> Found:
    """Refuse what a run on a local checkpoint would refuse now, and return what it would warn of; changes nothing.

    Args:
        path: The checkpoint.
        topology: What shall go on, which `safe_changes` accepts.
        changes: From what the checkpoint was written with.
        is_in_use: Whether a driver has it.

    Returns:
        The warning (R754, R790), if there is one, and what cannot be said here; empty: nothing.

    Raises:
        RunError: R623; R612, R619, R620 or R698, a file is damaged.
    """
    manifest = read_manifest(path)
    if not is_other_program(load_document(manifest["topology"]), topology):
        return None, ""
    if mode_of(manifest) != REALTIME:
        return (None, "") if is_in_use else _found_batch(path, manifest)
    is_kept = keeps_places(manifest, topology)
    if manifest.get("services"):
        return None, "" if is_kept else f"{ELSEWHERE} may refuse this change (R623)"
    if is_in_use:
        reason = "it is in use: stop it with Ctrl-C or SIGTERM; after a kill a run refuses this change (R623)"
        return None, "" if is_kept else reason
    from wallaroo_runtime.spark.progress import progress_in  # late: pyspark takes a second to import

    offset = progress_in(LocalDirectory(path), f"{manifest.get('spark', SPARK)}/").offset
    found = repeated(path, offset)
    if found and not is_kept:
        raise refused(path, AHEAD, changes)
    return repeated_messages(found) if found else None, ""


def _found_batch(path: Path, manifest: Mapping[str, Any]) -> Found:
    before, after = manifest.get("rescaled", (-1, -1))
    is_remote = "egress" in manifest.get("services", {})
    published = Published() if is_remote else Published.of(read_base(path / "outbox"))
    written = read_written(path / "written.json").batch
    spark = manifest.get("spark", SPARK)
    files = SparkFiles(LocalDirectory(path), spark, published, (before, after), written=written)
    if is_remote:
        return None, f"{ELSEWHERE} may warn of results that have left (R754)" if files.pending() >= 0 else ""
    batch = files.repeated()
    return None if batch < 0 else repeated_batch(batch, is_published=batch <= published.batch), ""
