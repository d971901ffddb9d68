"""The supervisor of a worker: starts and restarts the worker, keeps its output, and ends it with the executor.

Run as `python -m wallaroo_runtime.worker.supervisor CONFIG`, where CONFIG is a JSON file with `directory`, `spec`
and `owner`. It imports neither Spark nor gRPC, so that it starts fast and stays small.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.emit.module import module_command
from wallaroo_runtime.system.backoff import Backoff
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.system.stop import SIGNALS
from wallaroo_runtime.worker import control, launch
from wallaroo_runtime.worker.child import WorkerProcess
from wallaroo_runtime.worker.directory import lock_path
from wallaroo_runtime.worker.ending import ENDED, Ending
from wallaroo_runtime.worker.log import RotatingLog
from wallaroo_runtime.worker.spec import WorkerSpec

GRACE_SECONDS = 5.0  # time between SIGTERM and SIGKILL when the application stops
ORPHAN_GRACE_SECONDS = 1.5  # the same if the executor is gone, when nobody waits for results
BROKEN_SECONDS = 1.0  # time within which a process whose streams broke must end
BACKOFF = Backoff(0.1, 2.0)
POLL_SECONDS = 0.01
PAST_LIMIT = 16

_started: list["subprocess.Popen[bytes]"] = []  # supervisors that this process has started, and must reap


class Supervisor:
    """Keeps one worker running and answers tasks that ask for it."""

    def __init__(self, directory: Path, spec: WorkerSpec, owner: ProcessId) -> None:
        self.directory, self.spec, self.owner = directory, spec, owner
        log_directory = Path(spec.log_directory) if spec.log_directory else directory
        self.log = RotatingLog(log_directory / f"worker-{directory.name}.log")
        self.counted = directory / "generation"  # the next supervisor goes on counting, so a number has one meaning
        self.generation = int(self.counted.read_bytes() or 0) if self.counted.exists() else 0
        self.first = self.generation + 1
        self.process: WorkerProcess | None = None
        self.state: dict[str, Any] = {"state": "starting"}
        self.changed = asyncio.Condition()
        self.wanted = asyncio.Event()  # not set while the worker has failed for good
        self.over = asyncio.Event()
        self.grace = GRACE_SECONDS
        self.endings: deque[float] = deque()
        self.past: dict[int, Ending] = {}  # ends of the latest processes, by generation
        self.unanswered = 0  # number of the last process that has left a call unanswered
        self.serving: set[asyncio.Task[Any]] = set()

    async def run(self, started: int) -> None:
        """Serve until the executor is gone or a task asks to stop. Write to `started` when tasks can connect."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.over.set)
        owner = self._watch_owner()
        temporary = self.directory / (control.SOCKET + ".new")
        temporary.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._serve, path=temporary, limit=control.MAX_LINE_BYTES)
        temporary.rename(self.directory / control.SOCKET)
        os.write(started, b"1")
        os.close(started)
        self.wanted.set()
        keeper = asyncio.create_task(self._keep_running())
        ended = asyncio.create_task(self.over.wait())
        await asyncio.wait({keeper, ended}, return_when=asyncio.FIRST_COMPLETED)
        server.close()
        ended.cancel()
        if not keeper.done():
            keeper.cancel()
            await asyncio.wait({keeper})
        if self.process is not None and not self.process.ended.done():
            await self.process.stop(self.grace)
        self.log.close()
        if owner >= 0:
            os.close(owner)
        self._remove_directory()
        await self._set({"state": "stopped"})
        if self.serving:
            await asyncio.wait(self.serving, timeout=1.0)
        if not keeper.cancelled() and (error := keeper.exception()):
            raise error

    def _watch_owner(self) -> int:
        try:
            descriptor = os.pidfd_open(self.owner.pid)
        except ProcessLookupError:
            self._owner_ended()
            return -1
        # Check the owner only now: if it is alive after the open, the descriptor surely belongs to it.
        if not self.owner.is_alive:
            self._owner_ended()
        else:
            asyncio.get_running_loop().add_reader(descriptor, self._owner_ended)
        return descriptor

    def _owner_ended(self) -> None:
        self.grace = ORPHAN_GRACE_SECONDS
        self.over.set()

    def _remove_directory(self) -> None:
        # Rename first, so that a task that comes now finds nothing instead of a partly removed directory.
        gone = self.directory.with_name(f"{self.directory.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self.directory.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        with contextlib.suppress(OSError):  # only the last worker of the executor can remove the parent
            lock_path(self.directory).unlink(missing_ok=True)
            self.directory.parent.rmdir()

    async def _set(self, state: dict[str, Any]) -> None:
        async with self.changed:
            self.state = state
            self.changed.notify_all()

    async def _keep_running(self) -> None:
        while True:
            await self.wanted.wait()
            served = await self._run_once()
            if self.state["state"] != "failed":
                await asyncio.sleep(BACKOFF.after(len(self.endings)))
                await self._spend(served)

    async def _run_once(self) -> bool:
        """Start the worker, wait for its end, and return whether it has served."""
        for name in (launch.SOCKET, launch.FAILURE, ENDED):
            (self.directory / name).unlink(missing_ok=True)
        self.log.clear_tail()
        if self.process is not None and self.process.ended.done():
            self.past[self.generation] = self.process.ending()
            self.past.pop(self.generation - PAST_LIMIT, None)
        self.generation += 1
        try:
            self.counted.write_text(str(self.generation), encoding="ascii")
            self.process = process = WorkerProcess(self.spec, self.directory, self.log)
        except OSError as error:
            await self._fail([launch.explain_refusal(self.spec, error)])
            return False
        if not await self._becomes_ready(process):
            reason = process.ending().text + " before it served"
            if self.generation == self.first or (self.directory / launch.FAILURE).exists():
                tail, log = self.log.tail(), self.log.path
                await self._fail(launch.explain_start(self.spec, self.directory, reason, tail, log=log))
            return False
        await self._set({"state": "ready", "generation": self.generation, "pid": process.pid})
        await asyncio.shield(process.ended)  # other tasks await this future, so it must not be cancelled
        if self.state["state"] == "ready":
            await self._set({"state": "starting"})
        return True

    async def _becomes_ready(self, process: WorkerProcess) -> bool:
        socket = self.directory / launch.SOCKET
        deadline = asyncio.get_running_loop().time() + self.spec.start_timeout_ms / 1000
        while not socket.exists():
            if process.ended.done():
                return False
            if asyncio.get_running_loop().time() > deadline:
                process.killed_for = f"it did not listen within {self.spec.start_timeout_ms / 1000:g} s"
                await process.stop(ORPHAN_GRACE_SECONDS)
                return False
            await asyncio.wait({process.ended}, timeout=POLL_SECONDS)
        return not process.ended.done()

    async def _spend(self, served: bool) -> None:
        """Count an end of the worker against its budget of restarts. Give up if it has ended too often."""
        ending = self.process.ending() if self.process else None
        if served and ending is not None and ending.is_excused:
            return
        now = asyncio.get_running_loop().time()
        window = self.spec.restart_window_ms / 1000
        self.endings.append(now)
        while self.endings and self.endings[0] < now - window:
            self.endings.popleft()
        if len(self.endings) <= self.spec.restart_limit:
            return
        reason = ending.text if ending else "it could not be started"
        diagnostic = Diagnostic.of(
            "W406",
            worker=self.spec.name,
            count=len(self.endings),
            seconds=f"{window:g}",
            reason=reason if served else reason + " before it served",
            log=self.log.path,
            traceback=self.log.tail(),
        )
        await self._fail([diagnostic])

    async def _fail(self, diagnostics: list[Diagnostic]) -> None:
        self.wanted.clear()
        await self._set({"state": "failed", "diagnostics": [finding.to_json() for finding in diagnostics]})

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            self.serving.add(task)
            task.add_done_callback(self.serving.discard)
        try:
            reply = await self._answer(json.loads(await reader.readline()))
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        except (ValueError, KeyError, TypeError) as error:
            self.log.write(f"[supervisor: bad request: {error}]\n".encode())
        except ConnectionError:
            pass  # the task was killed while it waited, so nobody needs the answer
        finally:
            writer.close()

    async def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        match request["op"]:
            case "stop":
                self.over.set()
                await self._settled(("stopped",), 0)
            case "retry":
                if self.state["state"] == "failed":
                    self.endings.clear()
                    self.past.clear()
                    self.process, self.first = None, self.generation + 1
                    self.state = {"state": "starting"}
                    self.wanted.set()
                await self._settled(("ready", "failed", "stopped"), 0)
            case "kill":
                await self._kill(request["generation"], str(request["reason"]), bool(request["is_excused"]))
            case "excuse":
                for _ in range(min(len(self.endings), request["count"])):
                    self.endings.pop()
            case "ending":
                await self._leave(request["generation"])
                ending = self._ending_of(request["generation"])
                return {**self.state, "ending": ending and ending.to_json()}
            case "recover":
                left = request["generation"]
                await self._leave(left)
                self._note_unanswered()
                # The number is not known if the directory of the earlier supervisor is gone.
                await self._settled(("ready", "failed", "stopped"), left if left <= self.generation else 0)
            case "wait":
                await self._settled(("ready", "failed", "stopped"), 0)
            case "status":
                pass
            case other:
                msg = f"unknown operation {other!r}"
                raise ValueError(msg)
        return self.state

    async def _settled(self, states: tuple[str, ...], after: int) -> None:
        async with self.changed:
            await self.changed.wait_for(
                lambda: self.state["state"] in states and self.state.get("generation", after + 1) > after
            )

    def _note_unanswered(self) -> None:
        """Write into the log, once for each process of the worker, that the process left a call unanswered.

        The log names the process that ended last, because the task may name an earlier process with the same socket.
        """
        runs = self.process is not None and not self.process.ended.done()
        ended = self.generation - runs
        if ended > self.unanswered:
            self.unanswered = ended
            self.log.write(f"[supervisor: process {ended} of the worker left a call unanswered]\n".encode())

    def _ending_of(self, generation: int) -> Ending | None:
        process = self.process
        if process is not None and self.generation == generation and process.ended.done():
            return process.ending()
        return self.past.get(generation)

    async def _kill(self, generation: int, reason: str, is_excused: bool = False) -> None:
        process = self.process
        if process is not None and self.generation == generation and not process.ended.done():
            process.killed_for, process.is_excused = reason, is_excused
            process.signal(signal.SIGKILL)
            await asyncio.shield(process.ended)

    async def _leave(self, generation: int) -> None:
        process = self.process
        if process is None or self.generation != generation:
            return
        await asyncio.wait({process.ended}, timeout=BROKEN_SECONDS)
        await self._kill(generation, "its streams broke while it was running")


def start(directory: Path, spec: WorkerSpec, owner: ProcessId) -> None:
    """Start a supervisor in its own session, and return when it answers requests.

    Raises:
        OSError: The supervisor ended at once; its output is in `supervisor.log` in the directory.
    """
    config = directory / "supervisor.json"
    config.write_text(
        json.dumps({"directory": str(directory), "spec": spec.to_json(), "owner": [owner.pid, owner.start_time]}),
        encoding="utf-8",
    )
    reader, writer = os.pipe()
    try:
        try:
            with (directory / "supervisor.log").open("ab") as output:
                process = subprocess.Popen(
                    module_command(sys.executable, __spec__.name, str(config), str(writer)),
                    cwd=directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    pass_fds=(writer,),
                )
        finally:
            os.close(writer)
        _started[:] = [known for known in _started if known.poll() is None] + [process]
        if not os.read(reader, 1):
            raise OSError((directory / "supervisor.log").read_text(encoding="utf-8", errors="replace")[-4096:])
    finally:
        os.close(reader)


def main(arguments: list[str]) -> None:
    """Run the supervisor. The first argument is its configuration file."""
    config = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    directory, spec = Path(config["directory"]), WorkerSpec.from_json(config["spec"])
    os.umask(0o077)
    asyncio.run(Supervisor(directory, spec, ProcessId(*config["owner"])).run(int(arguments[1])))


if __name__ == "__main__":
    main(sys.argv[1:])
