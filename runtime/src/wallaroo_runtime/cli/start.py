"""The entry point of the command `wallaroo`: makes sure that `import wallaroo` finds the SDK, then runs the command."""

import io
import os
import signal
import sys

# These commands, and the processes that they start, write users' messages to files, so other users may not read them.
PRIVATE_COMMANDS = {"run", "submit", "gateway", "egress", "state", "dead-letters"}
SIGN = "diagnostic/diagnostic.py"  # file that the SDK has, but the package of the original Wallaroo did not


def main() -> int:
    """Run the command `wallaroo`. Report T221 if Python finds other packages of this name before the SDK."""
    open_streams()
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during imports prints no traceback
    others = set_aside_others()
    from wallaroo.diagnostic.diagnostic import Diagnostic
    from wallaroo_runtime.cli.main import main as run
    from wallaroo_runtime.console.json_line import report
    from wallaroo_runtime.errors import TOPOLOGY
    from wallaroo_runtime.system.stop import end_for_good, end_in_order

    signal.signal(signal.SIGINT, handler)
    end_in_order()
    if not others:
        if sys.argv[1:2] and sys.argv[1] in PRIVATE_COMMANDS:
            os.umask(0o077)
        code = run()
        end_for_good()
        return code
    report([Diagnostic.of("T221", found=file) for file in others], "--json" in sys.argv[1:])
    return TOPOLOGY


def set_aside_others() -> list[str]:
    """Remove directories with another package `wallaroo` from sys.path, and return the places of these packages."""
    # Late: a signal before `main` would print a traceback.
    import importlib.util
    from pathlib import Path

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


def open_streams() -> None:
    """Open standard streams that are closed, and let stdout print every text, whatever the locale.

    Otherwise the next file to be opened, perhaps of a checkpoint, would be the output of child processes.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the whole process
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
