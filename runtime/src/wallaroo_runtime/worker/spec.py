"""The description by which a task finds or starts its worker."""

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wallaroo.emit.module import module_command
from wallaroo_runtime.archive.placeholder import ARCHIVE_PLACEHOLDER, PLATFORM_PLACEHOLDER, SITE, this_platform

if TYPE_CHECKING:
    from wallaroo_runtime.topology.model import Topology
    from wallaroo_runtime.topology.worker import Worker

CACHE_BYTES = 512 * 1024 * 1024
PYTHON_PLACEHOLDER = "{python}"


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """The description by which one worker is started and called.

    Attributes:
        application: Name of the application.
        name: Name of the worker in the topology.
        command: Program and arguments; a first item `{python}` stands for this interpreter.
        directory: Working directory of the worker.
        interface_hash: Hash that the worker's `Init` must answer; empty if any hash is accepted.
        deadline_ms: Time without progress in a call after which the worker counts as hung.
        cache_bytes: Limit for the bytes in the worker's state cache.
        check_persist: Whether the worker searches for changes of state that the program does not persist; this is slow.
        processes: Number of processes of a worker in a language without threads; 0 for one process per processor.
        run: Name of the run (Spark's application id), so that two runs share no worker.
        log_directory: Directory of the worker's output; empty for its private directory.
        start_timeout_ms: Time within which the worker must serve.
        restart_limit: Number of times that the worker may end within `restart_window_ms`.
        restart_window_ms: See `restart_limit`.
        archive: Name of the worker's archive, as Spark ships it; empty if the worker is on this machine.
        archive_digest: SHA-256 of the archive in hexadecimal.
        python: Interpreter for `{python}`; empty for the interpreter of this process.
        python_path: Directories at the beginning of the worker's PYTHONPATH.
        topics: Directory with the topics of the in-memory engine; empty if Kafka has the topics.
    """

    application: str
    name: str
    command: tuple[str, ...]
    directory: str
    args: tuple[str, ...] = ()
    interface_hash: str = ""
    deadline_ms: int = 60_000
    cache_bytes: int = CACHE_BYTES
    check_persist: bool = False
    processes: int = 0
    run: str = ""
    log_directory: str = ""
    start_timeout_ms: int = 60_000
    restart_limit: int = 10
    restart_window_ms: int = 60_000
    archive: str = ""
    archive_digest: str = ""
    python: str = ""
    python_path: tuple[str, ...] = ()
    topics: str = ""

    @classmethod
    def of(cls, topology: "Topology", worker: "Worker") -> "WorkerSpec":
        """Return the spec of a worker of a topology."""
        return cls(
            application=topology.name,
            name=worker.name,
            command=worker.command,
            directory=worker.directory,
            args=worker.args,
            interface_hash=worker.interface_hash,
            deadline_ms=worker.call_deadline_ms,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "WorkerSpec":
        """Read the form that `to_json` wrote."""
        tuples = {name: tuple(value[name]) for name in ("command", "args", "python_path")}
        return cls(**{**value, **tuples})

    def unpacked(self, directory: Path) -> "WorkerSpec":
        """Return the spec with the paths of an archive that was unpacked in a directory."""

        def placed(text: str) -> str:
            return text.replace(ARCHIVE_PLACEHOLDER, str(directory)).replace(PLATFORM_PLACEHOLDER, this_platform())

        command = tuple(map(placed, self.command))
        path = (str(directory / SITE),) if (directory / SITE).is_dir() else ()
        return replace(self, archive="", command=command, directory=placed(self.directory), python_path=path)

    def digest(self) -> str:
        """Return 16 hex digits that differ when any field differs."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def interpreter(self) -> str:
        """Return the interpreter for which `{python}` is written in the command."""
        return self.python or sys.executable

    def program(self) -> list[str]:
        """Return the command with an interpreter for `{python}`. It imports nothing from the worker's directory."""
        first, *rest = self.command
        if first != PYTHON_PLACEHOLDER:
            return [first, *rest]
        return module_command(self.interpreter(), *rest[1:]) if rest[:1] == ["-m"] else [self.interpreter(), *rest]
