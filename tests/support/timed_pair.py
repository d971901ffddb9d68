"""Draws bucket calls of timed steps, and compares what two workers answer to each of them."""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from conformance.application import part, stage
from conformance.check import Context
from conformance.process import CALL_S, Client
from conformance.session import Answer, BucketStore, Failed, StateStream
from conformance.timer import PATHS, PORT, SENT, STATE_PORT, TICK
from conformance.visit import visit
from wallaroo.message.frame import encode_frame, read_frame, read_header
from wallaroo.worker._proto import worker_pb2 as pb

Drawn = dict[str, Any]
FIRST_MS, LAST_MS, END = -62_135_596_800_000, 253_402_300_799_999, 1 << 60
NAMES, YEAR_MS = "xyz\u00fc", 31_536_000_000
KEYS = ("a", "b", "", "\u00e9", "\x00", "\n")


def described(chance: random.Random, rules: Drawn) -> pb.Stage:
    """Return a stage with rules of the state's time: kind of time, ttl, and the timers of each step."""
    nodes = []
    for number, names in enumerate(rules["steps"]):
        has_time = rules["ttl_ms"] or names
        times = {"ttl_ms": rules["ttl_ms"], "timers": names}
        if has_time:
            times |= {"event_time": rules["time"] != "ingest", "watermarks": rules["time"] == "watermarks"}
            times["counters"] = ["expired", "timers_fired"]
        entry = part(
            PATHS[number],
            "STATE_COMPUTATION",
            port=PORT + number,
            state="timed",
            state_port=STATE_PORT,
            codec="string",
            **times,
            **({"visits": ["forget"]} if number < 3 else {}),
        )
        send = part(
            PATHS[number], "SEND", PATHS[number], port=SENT + number, codec="string", keys=True, timestamps=True
        )
        nodes += [entry, send]
    return stage("timed", *nodes)


def rules_of(chance: random.Random, before: Drawn | None = None) -> Drawn:
    """Draw the rules of a run, or what is changed of those of the run before."""
    count = chance.choice((1, 1, 2, 3, 4))
    drawn = {
        "ttl_ms": chance.choice((0, 0, 1, 10, 25, 60)),
        "time": chance.choice(("ingest", "event", "watermarks")),
        "steps": [sorted(chance.sample(NAMES, chance.choice((0, 1, 2, 4)))) if at < 3 else [] for at in range(count)],
    }
    if before is not None:
        for name in chance.sample(sorted(drawn), chance.choice((1, 2))):
            before = before | {name: drawn[name]}
        drawn = before
    return drawn


def ops_of(chance: random.Random, clock: int, names: Sequence[str]) -> list[Drawn]:
    found: list[Drawn] = []
    for _ in range(chance.choice((0, 1, 1, 2, 3) if names else (0,) * 9 + (1,))):
        name = chance.choice([*names] * 12 + ["q"]) if names else chance.choice([*NAMES, "q"])
        kind = chance.choice(("after", "after", "after", "at", "delete"))
        if kind == "delete":
            found.append({"delete": name})
        elif kind == "at":
            found.append(
                {"set": name, "at": chance.choice((clock - 20, clock, clock + 3, clock + 40, LAST_MS, LAST_MS + 1))}
            )
        else:
            found.append({"set": name, "after": chance.choice((0, 1, 1, 2, 5, 10, 20, 50, YEAR_MS, -1))})
    return found


def behaviours(chance: random.Random, clock: int, rules: Drawn) -> list[Drawn]:
    """Draw what the timers of all steps do."""
    return [
        {
            name: {
                word: True
                for word, odds in (("gives", 0.8), ("deletes", 0.1), ("fails", 0.1))
                if chance.random() < odds
            }
            | (
                {"ops": ops_of(chance, clock, names)}
                if chance.random() < 0.5
                else {"appends": chance.choice(([], [7]))}
            )
            for name in NAMES
        }
        for names in [*rules["steps"], [], [], []][:3]
    ]


def frames_of(
    chance: random.Random, rules: Drawn, sequence: int, clock: int, steps: list[Drawn]
) -> tuple[list[bytes], int, int]:
    """Draw frames of a call: messages, several in a frame, ticks and visits. Return also sequence and clock."""
    frames = []
    for _ in range(chance.choice((1, 2, 5, 12))):
        kind = chance.random()
        if kind < 0.25:
            clock = max(FIRST_MS - 5, clock + chance.choice((0, 1, 5, 10, 30, 200, -15, -200)))
            at = chance.choice((clock, clock, clock, clock, clock - 7, END if chance.random() < 0.1 else clock))
            frames.append(encode_frame([], port=TICK, sequence=sequence, timestamp_ms=at))
        elif kind < 0.35:
            frames.append(visit("forget", chance.choice(KEYS), sequence, sequence + 1, clock))
        else:
            number, size = chance.randrange(len(rules["steps"])), chance.choice((1, 1, 2, 4, 9))
            values, times, keys = [], [], []
            for at in range(size):
                clock += chance.choice((0, 0, 1, 2, 5, 15, 60, -10))
                key = chance.choice(KEYS)
                value = -1 if chance.random() < 0.06 else sequence + at
                message = {"value": value, "ops": ops_of(chance, clock, rules["steps"][number]), "steps": steps}
                values.append(f"{key}:{json.dumps(message, ensure_ascii=False)}".encode())
                keys.append(key.encode())
                odd = chance.choice((FIRST_MS - 1, LAST_MS + 1, -(1 << 63), (1 << 63) - 1, LAST_MS, FIRST_MS))
                times.append(odd if chance.random() < 0.004 else clock)
            known = sorted(set(keys))
            frames.append(
                encode_frame(
                    values,
                    port=PORT + number,
                    sequence=sequence,
                    timestamp_ms=min(times),
                    keys=known,
                    key_indexes=[known.index(key) for key in keys],
                    timestamps=[each - min(times) for each in times],
                )
            )
            sequence += size - 1
        sequence += chance.choice((0, 1, 1, 3)) if kind < 0.35 else 1
    return frames, sequence, clock


def moved(chance: random.Random, log: list[bytes]) -> list[bytes]:
    """Return a log as a rescale writes it: the last state of each key, among those of other keys."""
    states: dict[bytes, bytes] = {}
    for frame in map(read_frame, log):
        for at, value in enumerate(frame.values()):
            key = frame.keys[frame.key_indexes[at]]
            states.pop(key, None)
            if at not in frame.absent:
                header, keys = frame.header, {"keys": [key], "key_indexes": [0]}
                states[key] = encode_frame([value], port=header.port, encoding=header.encoding, **keys)
    return chance.sample(list(states.values()), len(states))


def told(answer: Answer) -> Drawn:
    """Return what an answer says, as far as it is the same in all languages."""
    messages = [
        (each.port, each.bucket, each.sequence, each.key, each.value, each.time)
        for each in answer.messages
        if each.port != 65535
    ]
    messages.sort(key=lambda each: each[0])  # each exit has an order of its own
    letters = []
    for each in answer.letters:
        letters.append(
            (
                each.code,
                each.path,
                each.step,
                each.key,
                each.has_key,
                each.sequence,
                each.port,
                each.timestamp_ms,
                each.input if each.input in map(str.encode, NAMES) else b"",  # others are in a form of the language
            )
        )
    letters.sort(key=lambda each: (each[5], str(each)))  # Python finds C508 and C523 on receipt
    counts = [
        (each.path, each.messages_in, each.messages_out, each.dead_letters, sorted(each.more.items()))
        for each in answer.done.counts
        if each.messages_in or each.messages_out or each.dead_letters or any(each.more.values())
    ]
    visits = [(each.id, each.path, each.keys, each.failed) for each in answer.done.visits]
    return {
        "messages": messages,
        "letters": letters,
        "counts": sorted(counts),
        "keys": answer.done.keys,
        "visits": visits,
    }


def shown(context: Context, description: pb.Stage, store: BucketStore) -> list[tuple[bytes, Any]]:
    reply = context.streams.stub().ShowState(pb.ShowStateRequest(stage=description, entries=store.log), timeout=CALL_S)
    assert not reply.HasField("failure"), reply.failure
    found = []
    for each in reply.states:
        value = json.loads(each.json)
        found.append((each.key, value.get("values", value.get("Values"))))
    return sorted(found)


def asked(
    stream: StateStream, store: BucketStore, frames: list[bytes], way: str, options: Drawn, skips: Any, cuts: Any
) -> Answer:
    """Make a call at once, or with skipped messages, or in parts whose outputs are released."""
    if way == "call":
        stream.ask(store, [b"".join(frames)], **options)
        return stream.answer(store)
    if way == "skips":
        version = pb.Version(counter=store.counter, nonce=store.nonce)
        stream.send(
            bucket=pb.Bucket(
                bucket=0, version=version, frames=b"".join(frames), skips=skips, alone=True, careful=options["careful"]
            )
        )
        return stream.answer(store)
    found, part = Answer(), b""
    for frame, is_cut in zip(frames, cuts, strict=True):
        part += frame
        if is_cut:
            stream.part(store, part, careful=options["careful"])
            released, part = stream.answer(store), b""
            found.messages += released.messages
            found.letters += released.letters
    stream.part(store, part, is_last=True, careful=options["careful"])
    last = stream.answer(store)
    last.messages, last.letters = found.messages + last.messages, found.letters + last.letters
    return last


def answer_of(client: Client, store: BucketStore, is_kept: bool, description: pb.Stage, *call: Any) -> Any:
    """Make a call, and return its answer, or the code of its failure."""
    store.nonce ^= 1 if store.counter and not is_kept else 0
    try:
        with StateStream(client, description, 0) as stream:
            return asked(stream, store, *call)
    except Failed as failed:
        return failed.failure.code


def difference(answers: list[Any]) -> str:
    """Return in words how two answers differ; empty if they do not."""
    if any(isinstance(each, str) for each in answers):
        codes = [each if isinstance(each, str) else "fine" for each in answers]
        return "" if codes[0] == codes[1] else str(codes)
    mine, other = map(told, answers)
    return next((f"{name}: {mine[name]}\n   but {other[name]}" for name in mine if mine[name] != other[name]), "")


def compare(first: Context, second: Context, seed: int) -> Iterator[str]:
    """Yield the differences between two workers on one drawn sequence of calls."""
    chance = random.Random(seed)
    clock = chance.choice((0, 1000, 0, -17, FIRST_MS, 1_700_000_000_000, LAST_MS - 100))
    rules, sequence = rules_of(chance), 0
    description, steps = described(chance, rules), behaviours(chance, clock, rules)
    stores = [BucketStore(0), BucketStore(0)]
    for number in range(chance.choice((1, 3, 8))):
        if number and chance.random() < 0.25:
            rules = rules_of(chance, rules)
            description = described(chance, rules)
            is_kept = False
        else:
            is_kept = chance.random() < 0.5
        if not is_kept and chance.random() < 0.3:
            for store in stores:
                store.log = moved(chance, store.log)
        frames, after, clock = frames_of(chance, rules, sequence, clock, steps)
        sequence = after + 1
        options: Drawn = {"careful": chance.random() < 0.3, "snapshot": chance.random() < 0.3}
        is_repeated = chance.random() < 0.2
        way = chance.choice(("call", "call", "skips", "parts"))
        many = sum(max(1, read_header(each).count) for each in frames)
        skips = [
            pb.Skip(ordinal=at, code="C508", reason="it fell")
            for at in sorted(chance.sample(range(many), min(many, 2)))
        ]
        cuts = [chance.random() < 0.4 for _ in frames]
        for _ in range(2 if is_repeated else 1):
            clients = first.streams, second.streams
            call = description, frames, way, options, skips, cuts
            answers = [answer_of(*each, is_kept, *call) for each in zip(clients, stores, strict=True)]
            if found := difference(answers):
                yield f"call {number}, {found}\n   {rules} {options}"
            if found or isinstance(answers[0], str):
                return
        for store, answer in zip(stores, answers, strict=True):
            store.commit(answer)
        states = [shown(context, description, store) for context, store in zip((first, second), stores, strict=True)]
        if states[0] != states[1]:
            yield f"call {number}, states {states[0]}\n   but {states[1]}\n {rules}"
            return
