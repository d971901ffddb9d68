"""Whether a program gives what was delivered and not committed in the same places again (real-time mode)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.ahead import repeated
from wallaroo_runtime.checkpoint.compatible import listed
from wallaroo_runtime.checkpoint.directory import SPARK
from wallaroo_runtime.checkpoint.manifest import REALTIME, LocalDirectory, mode_of, read_manifest
from wallaroo_runtime.checkpoint.spark_folder import plan_of
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan.change import Change
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.match import match_parts
from wallaroo_runtime.plan.origin import is_kept
from wallaroo_runtime.plan.port import Ports, kept_ports
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

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


def check_places(path: Path, topology: Topology, changes: Sequence[Change], *, is_in_use: bool) -> str:
    """Refuse what a run on a local checkpoint would refuse now; changes nothing.

    Args:
        path: The checkpoint.
        topology: What shall go on, which `safe_changes` accepts.
        changes: From what the checkpoint was written with.
        is_in_use: Whether a driver has it.

    Returns:
        What cannot be said here; empty: nothing.

    Raises:
        RunError: R623; R612, R619, R620 or R698, a file is damaged.
    """
    manifest = read_manifest(path)
    if mode_of(manifest) != REALTIME or keeps_places(manifest, topology):
        return ""
    if manifest.get("services"):
        return "its gateway or egress is remote: after a kill a run may refuse this change (R623)"
    if is_in_use:
        return "it is in use: stop it with Ctrl-C or SIGTERM; after a kill a run refuses this change (R623)"
    from wallaroo_runtime.spark.progress import progress_in  # late: pyspark takes a second to import

    offset = progress_in(LocalDirectory(path), f"{manifest.get('spark', SPARK)}/").offset
    if repeated(path, offset):
        raise refused(path, AHEAD, changes)
    return ""
