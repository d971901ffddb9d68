"""Sources and workers of drawn plans."""

import json
from pathlib import Path
from typing import Any

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"


WORKER = json.loads((VALID / "word_count.json").read_bytes())["workers"][0]


def source() -> dict[str, Any]:
    return {
        "path": "0/sources/0", "name": "in", "kind": "tcp", "host": "127.0.0.1", "port": 7010,
        "framing": {"kind": "u32be"}, "max_message_bytes": 1024, "codec": "json", "worker": "main",
    }  # fmt: skip
