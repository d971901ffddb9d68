"""Packs the program of an application for executors that do not see the program's files."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from wallaroo_runtime.program.application import Application, load_application
from wallaroo_runtime.program.pack import PackOptions, pack
from wallaroo_runtime.spark.machine.temporary import temporary_directory


def packed(app: str, args: Sequence[str]) -> Application:
    """Pack an application into a new archive, which Spark distributes to its executors.

    Args:
        app: The application, as for `load_application`.
        args: The application's command-line arguments.

    Raises:
        RunError: R658 if it cannot be packed, with the same text as from `wallaroo pack`.
    """
    output = Path(tempfile.mkdtemp(dir=temporary_directory()), "steps.tar.gz")
    pack(PackOptions(app, output, tuple(args)))
    return load_application(str(output), (), "", "")
