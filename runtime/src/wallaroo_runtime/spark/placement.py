"""Where the state of each shuffle partition is, and which partitions have moved to another executor."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from wallaroo_runtime.worker.owner import find_owner

LOCAL = "driver"
Homes = dict[str, str]


@cache
def executor_name() -> str:
    """Return the name of the executor that this task runs on: its number for Spark, and its machine.

    Spark gives both to every executor's process, whatever the cluster; on a local master it is the driver.
    """
    arguments = Path(f"/proc/{find_owner().pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return name_of(arguments)


def name_of(arguments: list[str]) -> str:
    """Return the name of an executor whose process was started with these arguments.

    Example:
        >>> name_of(["java", "--executor-id", "3", "--hostname", "10.0.0.4"]), name_of(["java"])
        ('3 on 10.0.0.4', 'driver')
    """
    found = dict(zip(arguments, arguments[1:], strict=False))
    number, machine = found.get("--executor-id"), found.get("--hostname")
    return f"{number} on {machine}" if number and machine else LOCAL


def partition_name(stage: str, partition: int) -> str:
    """Return the name of a partition: that of the stage whose state it has, and its number.

    Example:
        >>> partition_name("s1", 3)
        's1/3'
    """
    return f"{stage}/{partition}"


def by_executor(homes: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the partitions of each executor, in order.

    Example:
        >>> by_executor({"s1/10": "0 on a", "s1/9": "0 on a", "s1/0": "1 on b"})
        {'0 on a': ['s1/9', 's1/10'], '1 on b': ['s1/0']}
    """
    found: dict[str, list[str]] = {}
    for name, executor in sorted(homes.items(), key=lambda item: _rank(item[0])):
        found.setdefault(executor, []).append(name)
    return dict(sorted(found.items()))


def _rank(name: str) -> tuple[str, int]:
    stage, _, number = name.rpartition("/")
    return stage, int(number)


class Moves:
    """Remembers where partitions were, and says where they have gone when executors came or went.

    Between executors that stay Spark moves partitions as it likes; only the progress reports that.
    """

    def __init__(self) -> None:
        self._homes: Homes = {}

    def look(self, homes: Mapping[str, str]) -> Iterator[str]:
        """Yield a line for all partitions that went from one executor to another one, if executors came or went.

        Args:
            homes: Where partitions are now; it no longer changes.
        """
        before, now = self._homes, dict(homes)
        if before and set(before.values()) == set(now.values()):
            return
        self._homes = now
        ways: dict[tuple[str, str], list[str]] = defaultdict(list)
        for executor, names in by_executor(now).items():
            for name in names:
                if (old := before.get(name, executor)) != executor:
                    ways[old, executor].append(name)
        for (old, new), names in ways.items():
            yield f"state of {', '.join(names)} has moved from executor {old} to executor {new}"
