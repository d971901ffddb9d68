"""What a new checkpoint has."""

import json
from pathlib import Path

from support.manifest import put_manifest
from wallaroo_runtime.checkpoint.lock import LOCK


def written(path: Path, name: str, sequence: int = 5000) -> Path:
    """Write what a run leaves, as far as it matters here."""
    for folder in ("offsets", "commits"):
        (path / "spark-2" / folder).mkdir(parents=True)
    (path / LOCK).touch()
    put_manifest(path, name=name, spark="spark-2")
    journal = json.dumps({"journal": "1f", "offset": 90_000, "sequence": sequence})
    (path / "spark-2" / "offsets" / "3").write_text(f"v1\n{{}}\n{journal}\n")
    (path / "spark-2" / "commits" / "3").write_text("v1\n{}\n")
    return path
