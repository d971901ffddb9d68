"""Finds other packages named `wallaroo` that Python would import instead of the SDK."""

import importlib.util
import sys
from pathlib import Path

SIGN = "diagnostic/diagnostic.py"  # file that the SDK has, but the package of the original Wallaroo did not


def set_aside_others() -> list[str]:
    """Remove directories with another package `wallaroo` from sys.path, and return the places of these packages."""
    others = []
    while (spec := importlib.util.find_spec("wallaroo")) is not None:
        places = spec.submodule_search_locations or []
        if any((Path(folder) / SIGN).is_file() for folder in places) or not (spec.origin or places):
            break
        origin = Path(spec.origin or places[0])
        directory = origin.parent.parent if origin.name == "__init__.py" else origin.parent
        kept = [entry for entry in sys.path if Path(entry or ".").resolve() != directory.resolve()]
        if len(kept) == len(sys.path):
            break
        others.append(str(origin))
        sys.path[:] = kept
        importlib.invalidate_caches()
    return others
