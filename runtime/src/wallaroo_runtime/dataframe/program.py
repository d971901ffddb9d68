"""The program of an application, for executors that do not see its files."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from wallaroo_runtime.program.application import Application, load_application
from wallaroo_runtime.program.pack import PackOptions, pack
from wallaroo_runtime.spark.machine.temporary import temporary_directory


def packed(app: str, args: Sequence[str]) -> Application:
    """Return an application as a new archive, which Spark brings to its executors.

    Args:
        app: As `load_application` takes it.
        args: What the application sees on its command line.

    Raises:
        RunError: R658, it cannot be packed: `wallaroo pack` says the same.
    """
    output = Path(tempfile.mkdtemp(dir=temporary_directory()), "steps.tar.gz")
    pack(PackOptions(app, output, tuple(args)))
    return load_application(str(output), (), "", "")
