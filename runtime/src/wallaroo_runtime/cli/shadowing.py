"""Packages of the SDK's name that Python would find before it."""

import importlib.util
import sys
from pathlib import Path

SIGN = "diagnostic/diagnostic.py"  # a file of the SDK that Wallaroo's own package did not have


def set_aside_others() -> list[str]:
    """Take directories with another `wallaroo` off sys.path until the SDK is found; return the former path."""
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
