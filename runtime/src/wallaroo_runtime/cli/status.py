"""`wallaroo status [CHECKPOINT|APP]`: the present numbers of a run, or the end of the last run."""

import argparse
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.directory import find_directory
from wallaroo_runtime.checkpoint.end_note import failed_runs
from wallaroo_runtime.checkpoint.registry import running
from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.console.json_line import print_json
from wallaroo_runtime.console.reporter import printable
from wallaroo_runtime.console.table import number, table, text
from wallaroo_runtime.errors import count

NAME = 28
COUNTS = ("messages_in", "messages_out", "dead_letters")
PARTS = (  # fits 80 columns
    text("part", NAME, NAME),  # not shortened, because two may begin alike
    *(number(name, width) for name, width in (("in", 12), ("out", 12), ("in/s", 9), ("dead letters", 12))),
)


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("status", help="show the state of a run", description=__doc__)
    what = "checkpoint directory, program, or name in `wallaroo ps`; default: the only running application"
    parser.add_argument("checkpoint", metavar="CHECKPOINT|APP", nargs="?", help=what)
    parser.add_argument("--json", action="store_true", help="as one JSON object; findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the status of a checkpoint."""
    from wallaroo_runtime.monitor.endpoint import status_of  # late import: it needs an HTTP client

    status = status_of(chosen(arguments.checkpoint))
    if arguments.json:
        print_json(status)
    else:
        print("\n".join(map(printable, lines(status))))
    return 0


def chosen(named: str | None) -> Path:
    """Return the checkpoint that a command line names. If it names none, return that of the only running application.

    Raises:
        RunError: R608 if no application runs, or several do; or as `find_directory`.
    """
    if named:
        return find_directory(named)
    runs = list(running())
    if len(runs) == 1:
        return Path(runs[0]["checkpoint"])
    if not runs:
        fix = "give CHECKPOINT or APP, to see how its last run ended"
        raise wrong_usage(reason="no application of yours runs on this machine", fix=fix)
    places = ", ".join(f'{shlex.quote(each["checkpoint"])} ("{each["application"]}")' for each in runs)
    raise wrong_usage(reason=f"{len(runs)} applications run", fix=f"give one of {places}")


def lines(status: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of text that `wallaroo status` prints about a run.

    Args:
        status: Result of `status_of`.
    """
    pid = f", pid {status['pid']}" if status.get("pid") else ""
    yield f"{status['application']}: {status['state']}{pid}"
    yield f"checkpoint {status['checkpoint']}"
    if status.get("monitor"):
        yield f"monitor    {status['monitor']}"
    if failures := failed_runs(status.get("earlier", {})):
        yield f"{failures}; now it runs again"
    if ended := status.get("ended"):
        yield failed_runs(ended) or f"the last run ended {ended['time']}: {ended['reason']}"
    if "parts" in status:
        yield from _numbers(status)
    else:
        yield from _last(status)


def processes(status: Mapping[str, Any]) -> dict[str, int]:
    """Return the pid of each process of a run by its name. Only the monitor of the run knows them."""
    workers = ({**each, "name": f"worker {each['name']}"} for each in status.get("workers", ()))
    return {each["name"]: each["pid"] for each in (*status.get("processes", ()), *workers) if each["pid"]}


def _numbers(status: Mapping[str, Any]) -> Iterator[str]:
    run, total, lag = status["run"], status["total"], status["lag"]
    yield (
        f"in this run: in {run['messages_in']:,}  out {run['messages_out']:,}  {status['rate']['now']:,.0f}/s  "
        f"dead letters {run['dead_letters']:,}"
    )
    if any(total[name] != run[name] for name in COUNTS):
        yield (
            f"since the checkpoint began: in {total['messages_in']:,}  out {total['messages_out']:,}  "
            f"dead letters {total['dead_letters']:,}"
        )
    behind = "not known yet" if lag["messages"] is None else f"{lag['messages']:,}, {lag['seconds']:,.0f} s"
    yield f"now: lag {behind}  waiting for sinks {lag['waiting_for_sinks']:,}"
    yield from (part["outage"] for part in status["parts"] if part["outage"])
    for sink in status["sinks"]:
        if sink.get("state") == "unreachable":
            waiting = count(sink.get("pending_messages", 0), "message")
            yield f'sink "{sink["name"]}" cannot be reached now at {sink.get("address", "")}; {waiting} waiting'
    stages = {name: latency["five_minutes"] for name, latency in status["latency_ms"].items()}
    latency = stages.pop("end_to_end")
    if latency["count"]:
        shown = ("p50", latency["p50"]), ("p99", latency["p99"]), ("p99.99", latency["p99_99"]), ("max", latency["max"])
        yield "end to end, 5 min: " + "  ".join(f"{name} {ms:,}" for name, ms in shown) + " ms"
        means = [f"{name} {part['mean']:,}" for name, part in stages.items() if part["count"]]
        yield from (f"  mean: {'  '.join(means[at : at + 4])} ms" for at in range(0, len(means), 4))
    names = labels(status["parts"])
    rows = [_cells(name, part) for name, part in zip(names, status["parts"], strict=True)]
    parts = table(PARTS, rows, indent=2, gap=1)
    yield parts.head
    for row, part in zip(rows, status["parts"], strict=True):
        yield parts.line(row)
        yield from (f"    {name.replace('_', ' ')}: {part[name]:,}" for name in status["counters"] if part[name])
    if listed := ", ".join(f"{name} {pid}" for name, pid in processes(status).items()):
        yield f"processes: {listed}"
    for finding in status["findings"][-5:]:
        yield f"{finding['time']} {finding['code']} {finding['message']}"


def _cells(name: str, part: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (f"{part[key]:,}" for key in ("messages_in", "messages_out"))
    return name, *counts, f"{part['rate_in']['now']:,.0f}", f"{part['dead_letters']:,}"


def labels(parts: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the label of each source, step and sink for a table. If labels would be equal, they end with the path.

    Example:
        >>> labels([{"role": "sink", "name": "out", "path": f"0/sinks/{number}"} for number in range(2)])
        ['sink out 0/sinks/0', 'sink out 0/sinks/1']
    """
    names = [f"{part['role']} {part['name']}"[:NAME] for part in parts]
    counts, paths = Counter(names), [part["path"] for part in parts]
    return [
        name if counts[name] == 1 else f"{name[: NAME - 1 - len(path)]} {path}"
        for name, path in zip(names, paths, strict=True)
    ]


def _last(status: Mapping[str, Any]) -> Iterator[str]:
    if messages := status["gateway"].get("messages"):  # none if Spark reads all sources
        yield f"gateway: {count(messages, 'message')} since it was started"
    for sink in status["sinks"]:
        taken, waiting = count(sink.get("messages", 0), "message"), sink.get("pending_messages", 0)
        yield f'sink "{sink.get("name", "")}": {taken} since the checkpoint began, {waiting:,} waiting'
