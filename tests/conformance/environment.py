"""Prepares what imports the package: failures that show both sides, and the SDK where it is not installed."""

import importlib.util
import sys
from pathlib import Path

# Importing these would import `assertion` itself without its help, which it does not need.
from conformance import assertion

if importlib.util.find_spec("wallaroo") is None:
    sys.path.append(str(Path(__file__).resolve().parents[2] / "api" / "python" / "src"))
assertion.install()
