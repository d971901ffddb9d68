"""Starts the process of a worker, and explains why a worker did not start."""

import contextlib
import errno
import json
import os
import platform
import re
import signal
import struct
import subprocess
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.worker.host import trace
from wallaroo_runtime.system.process import dying_with_parent
from wallaroo_runtime.worker.interpreter import refused
from wallaroo_runtime.worker.spec import PYTHON_PLACEHOLDER, WorkerSpec

SOCKET, FAILURE = "worker.sock", "failure.json"
MAX_FAILURE_BYTES = 4 * 1024 * 1024
ELF_BYTES = 20  # size of the header that names the type of processor
ELF_MACHINES = {0x03: "x86", 0x28: "arm", 0x3E: "x86_64", 0xB7: "aarch64", 0xF3: "riscv64"}
# Output of a program that ends for lack of memory.
# The pattern does not match whole lines, because a leading `.*` would need time quadratic in a line's length.
NO_MEMORY = re.compile(rb"MemoryError|out of memory|[Cc]annot allocate memory|bad_alloc|pthread_create failed")
# Variables that Spark sets for its own Python programs, but not for workers.
SPARK_VARIABLES = ("SPARK_", "PYSPARK_", "PYTHONHASHSEED", "PYTHONPATH")


def environment(spec: WorkerSpec, directory: Path) -> dict[str, str]:
    """Return the environment variables of a worker."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(SPARK_VARIABLES)}
    paths = [
        path
        for path in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if path and not path.endswith((".zip", ".jar")) and "pyspark" not in path
    ]
    if paths or spec.python_path:
        kept["PYTHONPATH"] = os.pathsep.join([*spec.python_path, *paths])
    return (
        kept
        | trace.service(spec.application)
        | {
            # Keys that a program computes with hash() must be equal in all processes, and after a restart.
            "PYTHONHASHSEED": "0",
            "WALLAROO_MODE": "worker",
            "WALLAROO_ARGS": json.dumps(spec.args),
            "WALLAROO_WORKER_DIR": str(directory),
            "WALLAROO_WORKER_PROCESSES": str(spec.processes or len(os.sched_getaffinity(0))),
            "WALLAROO_STATE_CACHE_BYTES": str(spec.cache_bytes),
            "WALLAROO_CHECK_PERSIST": "1" if spec.check_persist else "",
            "WALLAROO_TOPICS": spec.topics,
        }
    )


def launch(spec: WorkerSpec, directory: Path, output: int) -> "subprocess.Popen[bytes]":
    """Start the worker in a process group of its own. The worker is killed if the calling process ends.

    Raises:
        OSError: The program cannot be executed; see `explain_refusal`.
    """
    return subprocess.Popen(
        spec.program(),
        cwd=spec.directory,
        env=environment(spec, directory),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=dying_with_parent(signal.SIGKILL),  # noqa: PLW1509 - the supervisor has one thread
    )


def elf_machine(head: bytes) -> str:
    """Return the processor type of a program that begins with `head`; empty if the program is not an ELF file."""
    if head[:4] != b"\x7fELF" or len(head) < ELF_BYTES:
        return ""
    (machine,) = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)
    return ELF_MACHINES.get(machine, f"ELF machine {machine:#x}")


def _machine_of(path: str) -> str:
    with contextlib.suppress(OSError), Path(path).open("rb") as file:
        return elf_machine(file.read(ELF_BYTES))
    return ""


def other_machine(path: str, machine: str) -> Diagnostic:
    """Return the finding that a worker binary is for another type of processor."""
    reason = f"it is for {machine}; this machine is {platform.machine()}"
    return Diagnostic.of("W404", path=path, reason=reason, fix="build it for this machine: `wallaroo build DIR`")


def explain_refusal(spec: WorkerSpec, error: OSError) -> Diagnostic:
    """Return why the system did not execute the worker's program."""
    path = spec.program()[0]
    if not Path(spec.directory).is_dir():
        reason, fix = f"its directory {spec.directory} does not exist", "emit the topology again where the program is"
        return Diagnostic.of("W401", worker=spec.name, reason=reason, fix=fix)
    if spec.python and spec.command[0] == PYTHON_PLACEHOLDER:
        return refused(spec.python, error)
    machine = _machine_of(path)
    if error.errno == errno.ENOEXEC and machine and machine != platform.machine():
        return other_machine(path, machine)
    fix = {
        errno.ENOENT: "check the path; build the program with `wallaroo build DIR`",
        errno.EACCES: f"make it executable: `chmod +x {path}`",
    }.get(error.errno or 0, "build it again with `wallaroo build DIR`")
    return Diagnostic.of("W404", path=path, reason=error.strerror or str(error), fix=fix)


def status_text(returncode: int) -> str:
    """Return how a process ended, in words."""
    if returncode < 0:
        return f"it was ended by {signal.Signals(-returncode).name}"
    return f"it exited with status {returncode}"


def memory_text(status: int, printed: str, kills: int) -> str:
    """Return the signs that a process ended for lack of memory, in words; empty if there are none.

    Args:
        printed: Last line about memory that the process has printed; empty if there is no such line.
        kills: Number of processes that the kernel has ended for lack of memory while this process ran.

    Example:
        >>> memory_text(2, "fatal error: runtime: out of memory", 0).partition("; ")[0]
        'it printed "fatal error: runtime: out of memory"'
        >>> memory_text(-9, "", 0), memory_text(0, "MemoryError", 1)
        ('', '')
    """
    if status == -signal.SIGKILL and kills:
        reason = "the kernel ended a process for want of memory meanwhile (`dmesg` names it)"
    elif printed and status in (1, 2, -signal.SIGABRT, -signal.SIGSEGV):
        reason = f'it printed "{printed}"'
    else:
        return ""
    setting = "--conf spark.wallaroo.state.cacheBytes=SIZE"
    return f"{reason}; give it more memory, keep less in a state, or give a lower {setting}"


def memory_kills() -> int:
    """Return how many processes the kernel of this machine has ended for lack of memory; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return 0


def explain_start(spec: WorkerSpec, directory: Path, ending: str, tail: str, *, log: Path) -> list[Diagnostic]:
    """Return why a worker ended before it served: its own diagnostics, else the end of its log."""
    path = directory / FAILURE
    if path.exists():
        try:
            with path.open("rb") as file:
                report = json.loads(file.read(MAX_FAILURE_BYTES))
            return [Diagnostic.from_json(entry) for entry in report["diagnostics"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            ending = f"{ending}; its {FAILURE} cannot be read: {error}"
    fix = f"look into its log {log}" if tail else "run its command by hand: " + " ".join(spec.program())
    return [Diagnostic.of("W401", worker=spec.name, reason=ending, fix=fix, traceback=tail)]
