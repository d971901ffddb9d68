"""The console script: sees to it that `import wallaroo` finds the SDK before anything needs it."""

import importlib.util
import os
import sys
from pathlib import Path

# What they and the processes that they start write holds messages; what others write may be for anybody.
PRIVATE_COMMANDS = {"run", "submit", "gateway", "egress", "state", "dead-letters"}
SIGN = "diagnostic.py"  # a file of the SDK that Wallaroo's own package did not have


def main() -> int:
    """Run the command `wallaroo`; a package of the same name before the SDK is reported (T221)."""
    others = set_aside_others()
    from wallaroo.diagnostic import Diagnostic
    from wallaroo_runtime.cli.main import main as run
    from wallaroo_runtime.cli.main import report
    from wallaroo_runtime.errors import TOPOLOGY

    if not others:
        if sys.argv[1:2] and sys.argv[1] in PRIVATE_COMMANDS:
            os.umask(0o077)
        return run()
    report([Diagnostic.of("T221", found=found) for found in others], "--json" in sys.argv[1:])
    return TOPOLOGY


def set_aside_others() -> list[str]:
    """Take directories with another `wallaroo` off sys.path until the SDK is found; return what was there."""
    others = []
    while (spec := importlib.util.find_spec("wallaroo")) is not None:
        places = spec.submodule_search_locations or []
        if any((Path(place) / SIGN).is_file() for place in places) or not (spec.origin or places):
            break
        found = Path(spec.origin or places[0])
        directory = found.parent.parent if found.name == "__init__.py" else found.parent
        kept = [entry for entry in sys.path if Path(entry or ".").resolve() != directory.resolve()]
        if len(kept) == len(sys.path):
            break
        others.append(str(found))
        sys.path[:] = kept
        importlib.invalidate_caches()
    return others
