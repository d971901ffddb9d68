"""A process of a worker that its supervisor has started."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from wallaroo_runtime.worker import launch
from wallaroo_runtime.worker.ending import Ending, is_own, look_back
from wallaroo_runtime.worker.log import RotatingLog
from wallaroo_runtime.worker.spec import WorkerSpec

READ_BYTES = 256 * 1024
SAID_BYTES = 200


class WorkerProcess:
    """One process of the worker, from its start until it is reaped."""

    def __init__(self, spec: WorkerSpec, directory: Path, log: RotatingLog) -> None:
        self._loop = asyncio.get_running_loop()
        self._log, self._directory = log, directory
        self._pipe, output = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            self._process = launch.launch(spec, directory, output)
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            os.close(output)
        self.pid = self._process.pid
        self.killed_for, self.is_excused = "", False
        self._kills, self._said = launch.memory_kills(), ""
        self.status = 0
        self.at_work: dict[str, tuple[int, int]] = {}
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pidfd, self._reap)
        self._loop.add_reader(self._pipe, self._drain)

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._pipe, READ_BYTES)
            if data:
                self._take(data)
            else:
                self._loop.remove_reader(self._pipe)

    def _take(self, data: bytes) -> None:
        self._log.write(data)
        if match := launch.NO_MEMORY.search(data):
            begin = data.rfind(b"\n", 0, match.start()) + 1
            line = data[begin:].partition(b"\n")[0]
            self._said = line[:SAID_BYTES].decode("utf-8", "replace").strip()

    def _reap(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        status = self._process.wait()
        self.signal(signal.SIGKILL)  # end the remaining processes of the worker's group
        self.status, self.at_work = look_back(self._directory, self.pid, status)
        self._loop.remove_reader(self._pipe)
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._pipe, READ_BYTES):
                self._take(data)
        os.close(self._pipe)
        self.ended.set_result(status)

    def signal(self, number: int) -> None:
        """Send a signal to the worker and the processes that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def stop(self, grace: float) -> None:
        """End the process: by SIGTERM, and after `grace` seconds by SIGKILL."""
        self.signal(signal.SIGTERM)
        await asyncio.wait({self.ended}, timeout=grace)
        self.signal(signal.SIGKILL)
        await asyncio.shield(self.ended)

    def ending(self) -> Ending:
        """Return how the process ended."""
        is_known = not self.killed_for and bool(self.at_work) and is_own(self.status)
        memory = launch.memory_text(self.status, self._said, launch.memory_kills() - self._kills)
        return Ending(self.status, self.killed_for, self.at_work, self.is_excused or is_known, memory)
