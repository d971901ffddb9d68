"""CPU seconds and memory of the processes of a run, by what they are."""

import os
from collections.abc import Iterator
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            found.setdefault(parent, []).append(int(entry.name))
    return found


def descendants(pid: int) -> Iterator[int]:
    """Yield all processes below one."""
    children = _children()
    waiting = list(children.get(pid, ()))
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, ())
        yield process


def seconds(pid: int) -> float:
    """Return the CPU seconds of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def _role(pid: int) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
    if "java" in command.split(" ", 1)[0]:
        return "JVM"
    return "PySpark" if "pyspark" in command else ""


def measure(driver: int, workers: dict[str, list[int]]) -> dict[str, float]:
    """Return CPU seconds until now: driver, JVM, PySpark's Python processes, and each worker with its children."""
    found = {"driver": seconds(driver), "JVM": 0.0, "PySpark": 0.0}
    for pid in descendants(driver):
        if role := _role(pid):
            found[role] += seconds(pid)
    for name, pids in workers.items():
        found[f"worker {name}"] = sum(seconds(pid) + sum(map(seconds, descendants(pid))) for pid in pids)
    return found


def memory(pid: int) -> int:
    """Return the bytes that a process has in memory, shared parts in shares; 0: it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(text.partition("\nPss:")[2].split(maxsplit=1)[0]) * 1024
