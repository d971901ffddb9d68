"""The topology of the word count."""

import json
from pathlib import Path

VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors"


WORD_COUNT = json.loads((VECTORS / "topologies" / "valid" / "word_count.json").read_bytes())
