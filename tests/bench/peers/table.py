"""The tables: medians with their correctness, and ratios to one of the contenders."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.peers.contender import BASE, CONTENDERS
from bench.peers.verdict import EXACT

Run = dict[str, Any]  # a line of results.jsonl


class Column(NamedTuple):
    """A column of the tables.

    Attributes:
        title: In its head.
        work: The workload that it is of.
        name: Of its figure.
        form: How a figure is written.
        has_verdict: Whether its cells say how right the results are.
    """

    title: str
    work: str
    name: str
    form: str = "{:,.0f}"
    has_verdict: bool = True


COLUMNS = (
    Column("w1 words/s", "w1", "per_s"),
    Column("w2 p50 ms", "w2", "p50_ms", has_verdict=False),
    Column("w2 p99 ms", "w2", "p99_ms"),
    Column("w3 messages/s", "w3", "per_s"),
    Column("w4 records/s", "w4", "per_s"),
    Column("start s", "start", "start_s", "{:.1f}"),
    Column("w5 first result after the kill, s", "w5", "recovery_s", "{:.1f}"),
)
MEMORY = "memory MB"


def row(cells: Sequence[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def median(runs: Sequence[Run], name: str) -> float | None:
    """Return the median of the runs that have a figure."""
    values = [run[name] for run in runs if run.get(name) is not None]
    return statistics.median(values) if values else None


def remarks(column: Column, runs: Sequence[Run]) -> list[str]:
    """Return how complete and how right the results of a figure are."""
    words = ["incomplete"] if any(not run.get("is_whole", True) for run in runs) else []
    if column.has_verdict:
        words += sorted({run["text"] for run in runs if "text" in run})
    failed = sum("failed" in run for run in runs)
    return [*words, *([f"{failed} of {len(runs)} failed" if len(runs) > 1 else "failed"] if failed else [])]


def cell(column: Column, runs: Sequence[Run]) -> str:
    """Return a figure with its remarks."""
    if not runs:
        return "-"
    value = median(runs, column.name)
    words = [column.form.format(value)] if value is not None else []
    return ", ".join([*words, *remarks(column, runs)]) or "-"


def memory(runs: Sequence[Run], _: str = "") -> str:
    """Return the peaks of the processes' memory, from the least to the largest workload."""
    values = [run["memory_mb"] for run in runs if run.get("memory_mb")]
    return f"{min(values):,}-{max(values):,}" if values else "-"


def of(runs: Sequence[Run], name: str, work: str = "") -> list[Run]:
    """Return the runs of a contender, at one workload or at all."""
    return [run for run in runs if run["contender"] == name and work in ("", run["work"])]


def figures(runs: Sequence[Run], absent: dict[str, str]) -> list[str]:
    """Return the table of medians."""
    lines = [row(["", "guarantee", *(column.title for column in COLUMNS), MEMORY]), row(["---"] * (len(COLUMNS) + 3))]
    for name, contender in CONTENDERS.items():
        own = of(runs, name)
        if name in absent:
            lines.append(row([contender.title, contender.guarantee, f"not installed: {absent[name]}"]))
        elif own:
            cells = [cell(column, of(own, name, column.work)) for column in COLUMNS]
            lines.append(row([contender.title, contender.guarantee, *cells, memory(own)]))
    return lines


def ratios(runs: Sequence[Run]) -> list[str]:
    """Return the table of the medians divided by those of `BASE`, with what is not exact; nothing without it."""
    base = of(runs, BASE)
    if not base:
        return []

    def divided(value: float | None, unit: float | None) -> str:
        return f"{value / unit:.2f}" if value is not None and unit else "-"

    def ratio(column: Column, own: Sequence[Run]) -> str:
        both = [[run for run in runs if run["work"] == column.work] for runs in (own, base)]
        text = divided(median(both[0], column.name), median(both[1], column.name))
        words = [] if text == "-" else [word for word in remarks(column, both[0]) if word != EXACT]
        return ", ".join([text, *words])

    lines = [row([f"x {CONTENDERS[BASE].title}", *(column.title for column in COLUMNS), MEMORY])]
    lines.append(row(["---"] * (len(COLUMNS) + 2)))
    for name, contender in CONTENDERS.items():
        if own := of(runs, name):
            memories = divided(median(own, "memory_mb"), median(base, "memory_mb"))
            lines.append(row([contender.title, *(ratio(column, own) for column in COLUMNS), memories]))
    return lines


def tables(runs: Sequence[Run], absent: dict[str, str]) -> str:
    """Return both tables, the machine's load, and why runs failed."""
    lines = [*figures(runs, absent), "", *ratios(runs)]
    if runs:
        loads, first = [run["load"] for run in runs], runs[0]
        commits = ", ".join(sorted({run["commit"] for run in runs}))
        turns = len({run["turn"] for run in runs})
        lines += [
            "",
            f"Commit {commits}, size {first['size']}, turns: {turns}, {first['cores']} processors; load average ",
        ]
        lines[-1] += f"at the start of a run {min(loads):.1f} to {max(loads):.1f}."
    failures = [f"- {run['contender']}, {run['work']}: {run['failed']}" for run in runs if "failed" in run]
    return "\n".join([*lines, *([""] if failures else []), *failures])
