"""The record of a checkpoint, for tests that play a run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.manifest import Manifest, read_manifest, write_manifest
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.plan.port import Ports


def put_manifest(checkpoint: Path, document: Any = None, **fields: Any) -> Manifest:
    """Write the record of an application, by its document or else its name."""
    topology = document or {"name": fields.pop("name", "Word Count"), "pipelines": []}
    sources = [source["path"] for pipeline in topology["pipelines"] for source in pipeline["sources"]]
    ports = Ports({path: port for port, path in enumerate(sources)}, {}, len(sources))
    known = {"shuffle_partitions": 2, "buckets_per_partition": 4, "ports": ports, "id": "0a"}
    manifest = Manifest(topology, **{**known, **fields})
    write_manifest(LocalDirectory(checkpoint), manifest)
    return manifest


def change_manifest(checkpoint: Path, **fields: Any) -> Manifest:
    """Change fields of a checkpoint's record."""
    manifest = replace(read_manifest(checkpoint), **fields)
    write_manifest(LocalDirectory(checkpoint), manifest)
    return manifest
