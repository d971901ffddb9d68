"""What a drawn application is: data that the programs read, the messages it gets, and how it is run."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
PYTHON, GO = "python", "go"
PROGRAMS = {PYTHON: "program.py", GO: "drawn"}


class Chunk(NamedTuple):
    """A frame of the journal; a tick has no source and no messages."""

    source: int | None
    payloads: tuple[bytes, ...]
    time_ms: int


@dataclass(frozen=True)
class Settings:
    """What must not change what an application gives.

    Attributes:
        shuffle_partitions: Of each shuffle.
        buckets_per_partition: Of keys.
        ranges: Tasks of level 0.
        frame_bytes: A worker closes a frame of more.
        chunk_bytes: Of the journal, in one call.
        cache_bytes: Of a worker's states.
        small_log_bytes: Deltas of a state up to here are not worth a snapshot.
        seed: Decides in what order rows come out of a shuffle.
        fault: Kill points of the workers, as in WALLAROO_FAULT.
    """

    shuffle_partitions: int = 2
    buckets_per_partition: int = 2
    ranges: int = 1
    frame_bytes: int = 1 << 20
    chunk_bytes: int = 1 << 20
    cache_bytes: int = 64 << 20
    small_log_bytes: int = 1 << 18
    seed: int = 0
    fault: str = ""


@dataclass(frozen=True)
class Application:
    """A drawn application.

    Attributes:
        api: How it is declared: "graph" (Wallaroo 0.6, package stream) or "builder" (0.5, package application).
        main: The language of the program.
        other: The language of the program that hosts remote steps; empty: there is none.
        sources: Each has the `form` of its messages.
        steps: Each has `op`, `inputs`, `form` and what the operation needs. Streams are numbered: sources, then steps.
            One with `outputs` gives to the first of these that takes an item; the `output` of that name goes on.
        sinks: Each has `inputs`.
        orders: How the messages of each end are in order at a sink: "all", by "key", or as a "bag".
        chunks: The journal.
        batches: How many chunks each micro-batch has.
        settings: How it is run.
    """

    api: str
    main: str
    other: str
    sources: tuple[dict[str, Any], ...]
    steps: tuple[dict[str, Any], ...]
    sinks: tuple[dict[str, Any], ...]
    orders: tuple[str, ...]
    chunks: tuple[Chunk, ...] = ()
    batches: tuple[int, ...] = ()
    settings: Settings = field(default_factory=Settings)

    def program(self, role: str) -> Path:
        """Return the program in the part of "main" or "library"."""
        return HERE / PROGRAMS[self.main if role == "main" else self.other]

    def arguments(self, role: str) -> list[str]:
        """Return what a program gets."""
        described = {
            "name": "drawn",
            "role": role,
            "api": self.api,
            "other": bool(self.other),
            "program": str(self.program("library")) if self.other else "",
            "sources": self.sources,
            "steps": self.steps,
            "sinks": self.sinks,
        }
        return ["--described", json.dumps(described)]
