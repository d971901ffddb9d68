"""Draws bucket calls of windows, and compares what two workers answer to each of them."""

import json
import random
import struct
from collections.abc import Iterator
from typing import Any

from conformance.application import part, stage
from conformance.process import CALL_S, Client
from conformance.session import BucketStore
from conformance.window import PORT, SENT, STATE_PORT, TICK
from support.timed_pair import FIRST_MS, LAST_MS, answer_of, difference
from wallaroo.message.frame import encode_frame, read_header
from wallaroo.worker._proto import worker_pb2 as pb

Drawn = dict[str, Any]
VARIANTS = 3
LATE = ("drop", "fire_per_message", "place_in_oldest_window")


def windows_of(seed: int, count: int = 12) -> list[Drawn]:
    """Draw windows; each is followed by variants with another delay, gap and policy, whose states fit."""
    chance, found = random.Random(seed), []
    for _ in range(count):
        kind, time = chance.choice(("range", "session", "session", "count")), chance.choice(("event", "ingest"))
        slide = chance.choice((1, 5, 10))
        fixed: Drawn = {"kind": kind, "time": time, "range_ms": slide * chance.choice((1, 1, 2, 3)), "slide_ms": slide}
        if kind == "count":
            found += [{"kind": kind, "count": chance.choice((1, 2, 5))}] * VARIANTS
            continue
        for _ in range(VARIANTS):
            late, delay = chance.choice(LATE), chance.choice((0, 0, 1, 7, 20))
            if kind == "session":
                found.append(
                    {
                        "kind": kind,
                        "time": time,
                        "gap_ms": chance.choice((1, 5, 10, 30)),
                        "delay_ms": delay,
                        "late": late,
                    }
                )
            else:
                found.append(fixed | {"delay_ms": -(-delay // slide) * slide, "late": late})
    return found


def described(number: int, window: Drawn, has_watermarks: bool) -> pb.Stage:
    path, kind = f"0/steps/{2 * number + 1}", window["kind"]
    entry = part(
        path,
        "WINDOW",
        codec="int64",
        sessions=kind == "session",
        port=PORT,
        state=f"values {number}",
        state_port=STATE_PORT,
        event_time=window.get("time") == "event",
        watermarks=has_watermarks and window.get("time") != "ingest",
    )
    return stage("window", entry, part(path, "SEND", path, port=SENT, codec="string", keys=True, timestamps=True))


def frames_of(chance: random.Random, sequence: int, clock: int) -> tuple[list[bytes], int, int]:
    frames = []
    for _ in range(chance.choice((1, 3, 8))):
        if chance.random() < 0.3:
            clock = max(FIRST_MS, clock + chance.choice((0, 1, 5, 10, 30, 90, 6000, -15)))
            at = clock
            frames.append(encode_frame([], port=TICK, sequence=sequence, timestamp_ms=at))
            sequence += chance.choice((0, 1))
            continue
        values, times, keys = [], [], []
        for _ in range(chance.choice((1, 1, 2, 5, 12))):
            clock += chance.choice((0, 0, 1, 2, 5, 12, 40, -10))
            odd = chance.choice((FIRST_MS - 1, LAST_MS + 1, LAST_MS))
            times.append(odd if chance.random() < 0.004 else clock - chance.choice((0, 0, 0, 3, 11, 25)))
            keys.append(chance.choice(("a", "a", "b", "", "\u00e9")).encode())
            values.append(struct.pack(">q", chance.choices((-1, -2, len(times) + sequence), (1, 1, 40))[0]))
        known = sorted(set(keys))
        frames.append(
            encode_frame(
                values,
                port=PORT,
                sequence=sequence,
                timestamp_ms=min(times),
                keys=known,
                key_indexes=[known.index(key) for key in keys],
                timestamps=[each - min(times) for each in times],
            )
        )
        sequence += len(values)
    return frames, sequence, clock


def shown(client: Client, description: pb.Stage, store: BucketStore) -> Any:
    reply = client.stub().ShowState(pb.ShowStateRequest(stage=description, entries=store.log), timeout=CALL_S)
    assert not reply.HasField("failure"), reply.failure
    return sorted((each.key, json.loads(each.json)) for each in reply.states)


def compare(clients: tuple[Client, Client], windows: list[Drawn], seed: int) -> Iterator[str]:
    """Yield the differences between two workers on one drawn sequence of calls."""
    chance = random.Random(seed)
    clock = chance.choice((0, 1000, -17, FIRST_MS + 100, 1_700_000_000_000, LAST_MS - 5000))
    first = VARIANTS * chance.randrange(len(windows) // VARIANTS)
    number, has_watermarks, sequence = first, chance.random() < 0.3, 0
    stores = [BucketStore(0), BucketStore(0)]
    for call in range(chance.choice((1, 3, 8))):
        is_kept = chance.random() < 0.5
        if call and chance.random() < 0.2:
            number, is_kept = first + chance.randrange(VARIANTS), False
        description = described(number, windows[number], has_watermarks)
        frames, sequence, clock = frames_of(chance, sequence, clock)
        options: Drawn = {"careful": chance.random() < 0.3, "snapshot": chance.random() < 0.3}
        way = chance.choice(("call", "call", "skips", "parts"))
        many = sum(max(1, read_header(each).count) for each in frames)
        skips = [
            pb.Skip(ordinal=at, code="C508", reason="it fell")
            for at in sorted(chance.sample(range(many), min(many, 2)))
        ]
        cuts = [chance.random() < 0.4 for _ in frames]
        request = description, frames, way, options, skips, cuts
        answers = [answer_of(*each, is_kept, *request) for each in zip(clients, stores, strict=True)]
        what = f"call {call} of {windows[number]} {has_watermarks=} {way} {options}"
        if found := difference(answers):
            yield f"{what}, {found}"
        if found or isinstance(answers[0], str):
            return
        for store, answer in zip(stores, answers, strict=True):
            store.commit(answer)
        states = [shown(client, description, store) for client, store in zip(clients, stores, strict=True)]
        if states[0] != states[1]:
            yield f"{what}, states {states[0]}\n   but {states[1]}"
            return
