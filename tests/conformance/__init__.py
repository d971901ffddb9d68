"""Checks any worker against the specification; needs grpcio and protobuf, and this repository."""

import importlib.util
import sys
from pathlib import Path

# Importing these would import `assertion` itself without its help, which it does not need.
from conformance import assertion

if importlib.util.find_spec("wallaroo") is None:
    sys.path.append(str(Path(__file__).resolve().parents[2] / "api" / "python" / "src"))
assertion.install()
