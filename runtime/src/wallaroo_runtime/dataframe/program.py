"""The program of an application, for executors that do not see its files."""

from dataclasses import dataclass
from functools import cache

from wallaroo_runtime.program.application import Application, load_application
from wallaroo_runtime.program.pack import PackOptions, pack
from wallaroo_runtime.spark.machine.temporary import temporary_directory


@dataclass(frozen=True, slots=True)
class Program:
    """What `load` was called with."""

    app: str
    args: tuple[str, ...]

    @cache  # noqa: B019, a program has as many archives as it is loaded with arguments
    def packed(self) -> Application:
        """Return the application as an archive, which Spark brings to its executors; it is packed once.

        Raises:
            RunError: R658, it cannot be packed: `wallaroo pack` says the same.
        """
        output = temporary_directory() / f"steps-{abs(hash((self.app, self.args))):x}.tar.gz"
        pack(PackOptions(self.app, output, self.args))
        return load_application(str(output), (), "", "")
