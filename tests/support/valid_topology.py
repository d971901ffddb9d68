"""The valid topologies of the vectors."""

from pathlib import Path

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
