"""Checks rules for some kinds of parts: windows, steps of libraries, Kafka and connector sources, keys of messages."""

from collections.abc import Iterator

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.topology.index import Index, Part, items_of
from wallaroo_runtime.topology.model import STATE_KINDS
from wallaroo_runtime.topology.schema import shown_json

KEYED_SOURCES = frozenset({"kafka", "connector"})
MAX_OPEN_WINDOWS = 100_000
LAST_PORT, PORT_DIGITS = 65535, 5
OUTPUT_KINDS = STATE_KINDS | {"computation", "computation_multi"}
KEYING_KINDS = STATE_KINDS | {"key_by", "collect"}


def check_windows(index: Index) -> Iterator[Diagnostic]:
    """Check that only window steps have a `window`, that they use keys of messages, and that slides leave no gap."""
    for part in index.parts:
        kind, window = part.text("kind"), part.object("window")
        if part.kind != "steps" or not kind:
            continue
        if kind != "window" and "window" in part.value:
            reason, fix = f'a step of kind "{kind}" has no window', 'remove it, or write the kind "window"'
            yield index.finding("T102", part, "/window", reason=reason, fix=fix)
        elif kind == "window" and "window" not in part.value:
            reason, fix = 'a step of kind "window" needs the property "window"', 'add "window": its kind and its size'
            yield index.finding("T102", part, reason=reason, fix=fix)
        key = part.state().get("key")
        if kind == "window" and isinstance(key, dict) and key.get("kind") in ("single", "partition"):
            reason, fix = f'a window has no key of kind "{key["kind"]}"', 'write the kind "message"'
            yield index.finding("T102", part, "/state/key/kind", reason=reason, fix=fix)
        names = ("range_ms", "slide_ms") if "range_ms" in window else ("gap_ms", "gap_ms")
        span, slide, delay = window.get(names[0]), window.get(names[1]), window.get("delay_ms")
        if type(span) is not int or type(slide) is not int or slide < 1:
            continue
        if slide > span:
            reason = f"slide_ms {slide} is longer than range_ms {span}; messages between two windows would be in none"
            yield index.finding("T102", part, "/window/slide_ms", reason=reason, fix=f"write at most {span}")
        count = -(-(span + (delay if type(delay) is int else 0)) // slide)
        if count > MAX_OPEN_WINDOWS:
            yield index.finding("T271", part, f"/window/{names[1]}", count=count, limit=MAX_OPEN_WINDOWS)


def check_times(index: Index) -> Iterator[Diagnostic]:
    """Check that only state computations have visits, timers and a ttl, and that steps of a state share one time.

    The time is that of arrival (`ingest`) or that in the data (`event`).
    """
    times: dict[str, str] = {}
    for part in index.parts:
        kind, time, name = part.text("kind"), part.text("time"), part.state().get("name")
        if part.kind != "steps" or not kind:
            continue
        own = [pointer for pointer in ("/visits", "/timers") if pointer[1:] in part.value]
        own += ["/state/ttl_ms"] if "ttl_ms" in part.state() else []
        is_timed = any(pointer != "/visits" for pointer in own)
        if not kind.startswith("state_"):
            for pointer in own:
                reason = f'a step of kind "{kind}" has no {pointer.rpartition("/")[2]}'
                yield index.finding("T102", part, pointer, reason=reason, fix="remove it")
        elif is_timed and "time" not in part.value:
            reason, fix = 'a step with timers, or with a ttl, needs the property "time"', 'add "time": "ingest"'
            yield index.finding("T102", part, reason=reason, fix=fix)
        if "time" in part.value and not is_timed:
            reason, fix = "a step without timers, and without a ttl, has no time", "remove it"
            yield index.finding("T102", part, "/time", reason=reason, fix=fix)
        elif time and isinstance(name, str) and times.setdefault(name, time) != time:
            reason = f'state "{name}" has the time "{times[name]}" at another step'
            yield index.finding("T102", part, "/time", reason=reason, fix=f'write "{times[name]}"')
        for what in ("visit", "timer"):
            for number, name in enumerate(items_of(part.value, f"{what}s")):
                yield from index.check_normal(part, f"/{what}s/{number}", what, name)


def check_outputs(index: Index) -> Iterator[Diagnostic]:
    """Check that each named output reads one computation or window of its worker, and has a unique name there."""
    parts = {part.path: part for part in index.parts}
    seen: set[tuple[str, str]] = set()
    for part in index.parts:
        paths = [path for _, path in part.inputs()]
        if part.kind != "steps" or part.text("kind") != "output" or not all(path in parts for path in paths):
            continue
        read = parts[paths[0]] if paths else part
        reason, wanted = "", "an output reads one computation, state computation or window"
        if len(paths) != 1:
            reason = f"reads {len(paths)} parts; {wanted}"
        elif read.text("kind") not in OUTPUT_KINDS:
            reason = f'reads "{read.path}" of kind "{read.text("kind")}"; {wanted}'
        elif any(read.value.get(name) != part.value.get(name) for name in ("worker", "component")):
            reason = f'has another worker or component than "{read.path}", which it reads'
        elif (read.path, part.text("name")) in seen:
            what = f'output {shown_json(part.text("name"))} of "{read.path}"'
            yield index.finding("T203", part, "/inputs", what=what, kind="name")
        seen.add((read.path, part.text("name")))
        if reason:
            yield index.finding("T213", part, "/inputs", path=part.path, reason=reason)


def check_components(index: Index) -> Iterator[Diagnostic]:
    """Check that only steps of libraries have a `component`, so no step of the first worker, the program itself."""
    program = index.workers[0][1].get("name") if index.workers else None
    for part in index.parts:
        if "component" in part.value and part.kind == "steps" and part.text("worker") == program:
            reason = f'worker "{program}" is the program itself, which knows its steps by their paths'
            yield index.finding("T102", part, "/component", reason=reason, fix="remove it")


def check_ends(index: Index) -> Iterator[Diagnostic]:
    """Check that Kafka sources list a partition once, and that `refill_credits` of connectors fits `max_credits`."""
    for part in index.parts:
        seen: set[int] = set()
        for number, item in enumerate(items_of(part.value, "partitions")):
            partition = item.get("number") if isinstance(item, dict) else None
            if type(partition) is int and partition in seen:
                pointer = f"/partitions/{number}/number"
                what = f'partition {partition} of source "{part.text("name")}"'
                yield index.finding("T203", part, pointer, what=what, kind="number")
            elif type(partition) is int:
                seen.add(partition)
        most, refill = part.value.get("max_credits"), part.value.get("refill_credits")
        if type(most) is int and type(refill) is int and refill > most:
            reason, fix = f"refill_credits {refill} is more than max_credits {most}", f"write at most {most}"
            yield index.finding("T102", part, "/refill_credits", reason=reason, fix=fix)


def check_brokers(index: Index) -> Iterator[Diagnostic]:
    """Check that the ports of brokers are valid and not 0."""
    for part in index.parts:
        for number, broker in enumerate(items_of(part.value, "brokers")):
            port = broker.rpartition(":")[2] if isinstance(broker, str) and ":" in broker else ""
            if port.isdecimal() and not (len(port) <= PORT_DIGITS and 1 <= int(port) <= LAST_PORT):
                values = {
                    "what": "broker",
                    "value": shown_json(broker),
                    "reason": f"{port[:80]} is not the port of a broker",
                }
                yield index.finding("T211", part, f"/brokers/{number}", **values)


def check_message_keys(index: Index) -> Iterator[Diagnostic]:
    """Check that messages have a key on every way to a state that uses the key of the message."""
    parts = {part.path: part for part in index.parts}
    keyless = _keyless(index, parts)
    for part in index.parts:
        key = part.state().get("key")
        if part.text("kind") not in STATE_KINDS or not isinstance(key, dict) or key.get("kind") != "message":
            continue
        for at, path in part.inputs():
            if path in keyless:
                what = f'step "{part.text("name")}" keeps state by the key of messages'
                yield index.finding("T229", part, f"/inputs/{at}", what=what, input=parts[path].text("name"))


def _keyless(index: Index, parts: dict[str, Part]) -> set[str]:
    """Return the paths of sources and steps that may emit messages without a key."""
    paths = {part.path for part in index.parts if part.kind == "sources" and not _gives_keys(part)}
    plain = [part for part in index.parts if part.kind == "steps" and part.text("kind") not in KEYING_KINDS]
    grew = True
    while grew:
        before = len(paths)
        paths.update(part.path for part in plain if any(path in paths for _, path in part.inputs()))
        grew = len(paths) > before
    return paths & parts.keys()


def _gives_keys(source: Part) -> bool:
    return source.text("kind") in KEYED_SOURCES or "key" in source.value
