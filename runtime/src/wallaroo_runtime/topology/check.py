"""Checks the meaning of a topology, beyond the shape of its document: section 1 of the specification.

The rules read the raw document and skip parts whose shape is wrong, so that one pass reports every finding.
"""

import base64
import binascii
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, did_you_mean
from wallaroo_runtime.topology.check_by_kind import (
    check_brokers,
    check_components,
    check_ends,
    check_message_keys,
    check_outputs,
    check_times,
    check_windows,
)
from wallaroo_runtime.topology.index import NOT_NORMAL, Index, Json, Part, items_of
from wallaroo_runtime.topology.model import STATE_KINDS
from wallaroo_runtime.topology.schema import shown_json
from wallaroo_runtime.topology.topic import check_topics


def check_names(index: Index) -> Iterator[Diagnostic]:
    """Check that names are in NFC (Unicode's normal form), and that pipelines and workers have unique names."""
    named: list[tuple[str, str, Any, Part | None]] = [("application", "/name", index.document.get("name"), None)]
    named += [("worker", f"{pointer}/name", worker.get("name"), None) for pointer, worker in index.workers]
    named += [("pipeline", f"{pointer}/name", pipeline.get("name"), None) for pointer, pipeline in index.pipelines]
    for part in index.parts:
        named.append((part.kind[:-1], "/name", part.value.get("name"), part))
        named.append(("state", "/state/name", part.state().get("name"), part))
    seen: dict[tuple[str, str], str] = {}
    for what, pointer, name, owner in named:
        if not isinstance(name, str):
            continue
        if owner is not None:
            yield from index.check_normal(owner, pointer, what, name)
        elif not unicodedata.is_normalized("NFC", name):
            yield Diagnostic.of("T210", pointer=pointer, what=what, name=shown_json(name), reason=NOT_NORMAL)
        if what in ("pipeline", "worker") and seen.setdefault((what, name), pointer) != pointer:
            if what == "pipeline":
                first = pointer.replace("/name", "/sources/0")  # its user code is the place of the pipeline
                finding = index.placed(Diagnostic.of("T203", pointer=first, what=f'pipeline "{name}"', kind="name"))
                yield replace(finding, pointer=pointer)
            else:
                yield Diagnostic.of(
                    "T210", pointer=pointer, what=what, name=shown_json(name), reason="another worker has it"
                )


def check_sinks(index: Index) -> Iterator[Diagnostic]:
    """Check that the application has a sink."""
    lists = [pipeline.get("sinks") for _, pipeline in index.pipelines]
    if lists and not any(lists):
        yield Diagnostic.of(
            "T204", pointer="/pipelines", what="application", name=index.document.get("name"), end="sink"
        )


def check_paths(index: Index) -> Iterator[Diagnostic]:
    """Check that the property `path` of every part agrees with the part's position in the document."""
    for part in index.parts:
        path = part.text("path")
        if path and path != part.path:
            reason = f'is not the position; expected "{part.path}"'
            yield index.finding("T213", part, "/path", path=path, reason=reason)


def check_workers(index: Index) -> Iterator[Diagnostic]:
    """Check that every part runs on a worker of the document."""
    names = {name for _, worker in index.workers if isinstance(name := worker.get("name"), str)}
    if len(names) < len(index.workers) or not names:
        return  # no findings, since a part may mean a worker whose name is missing
    for part in index.parts:
        worker = part.text("worker")
        if worker and worker not in names:
            reason = f'runs on worker "{worker}", which is not in the document{did_you_mean(worker, names)}'
            yield index.finding("T213", part, "/worker", path=part.path, reason=reason)


def check_inputs(index: Index) -> Iterator[Diagnostic]:
    """Check that inputs exist, and that steps form no loop and are listed after their inputs."""
    known = {part.path: number for number, part in enumerate(index.parts)}
    readable = [part.path for part in index.parts if part.kind != "sinks"]
    loops = _loops(index)
    looping = {path for loop in loops for path in loop}
    for number, part in enumerate(index.parts):
        for at, path in part.inputs():
            pointer = f"/inputs/{at}"
            if path not in known:
                hint = did_you_mean(path, readable)
                reason = f'takes its input from "{path}", which is not in the document{hint}'
                yield index.finding("T213", part, pointer, path=part.path, reason=reason)
            elif part.kind == "steps" and "/steps/" in path and known[path] >= number and part.path not in looping:
                reason = f'step "{part.path}" precedes its input "{path}"'
                yield index.finding("T102", part, pointer, reason=reason, fix="put each step after the steps it reads")
    for loop in loops:
        part = index.parts[known[loop[0]]]
        reason = f"is in a loop: {' → '.join((*loop, loop[0]))}; a step may only read what comes before it"
        yield index.finding("T213", part, "/inputs", path=part.path, reason=reason)


def _loops(index: Index) -> list[list[str]]:
    """Return loops of steps in the direction of the messages: at least one from each group of connected loops."""
    inputs = {part.path: [path for _, path in part.inputs()] for part in index.parts if part.kind == "steps"}
    done: set[str] = set()
    loops = []
    for start in inputs:
        trail: dict[str, Iterator[str]] = {}
        at: str | None = start if start not in done else None
        while at is not None:
            following = next((path for path in trail.setdefault(at, iter(inputs[at])) if path in inputs), None)
            if following is None:
                done.add(at)
                del trail[at]
                at = next(reversed(trail), None)
            elif following in trail:
                names = list(trail)
                loop = names[names.index(following) :][::-1]
                first = loop.index(min(loop, key=_position))
                loops.append(loop[first:] + loop[:first])
            elif following not in done:
                at = following
    return loops


def _position(path: str) -> tuple[int, int]:
    pipeline, _, number = path.split("/")
    return int(pipeline), int(number)


def check_states(index: Index) -> Iterator[Diagnostic]:
    """Check that state steps have a state, and that steps of one state agree on its class, ttl, keys and timers."""
    classes: dict[str, tuple[str, Any]] = {}
    keys: dict[str, tuple[Any, tuple[frozenset[bytes], Any] | None, str]] = {}
    ttls: dict[str, str] = {}
    timers: dict[tuple[str, str], str] = {}
    for part in index.parts:
        kind, state = part.text("kind"), part.state()
        if part.kind == "steps" and kind:
            yield from _check_presence(index, part, kind)
        name = state.get("name")
        if not isinstance(name, str):
            continue
        component = index.components.get((part.text("worker"), f"{part.path}/state"), {})
        symbol = component.get("symbol")
        if isinstance(symbol, str) and classes.setdefault(name, shaped := (symbol, component.get("shape"))) != shaped:
            yield index.finding("T205", part, "/state", "/state", name=name, first=classes[name][0], second=symbol)
        ttl = f"ttl_ms {shown_json(state['ttl_ms'])}" if "ttl_ms" in state else "no ttl_ms"
        if ttls.setdefault(name, ttl) != ttl:
            yield index.finding("T205", part, "/state", name=name, first=ttls[name], second=ttl)
        for timer in items_of(part.value, "timers"):
            owner = f'timer {shown_json(timer)} of step "{part.text("name")}" ({part.path})'
            if isinstance(timer, str) and (former := timers.setdefault((name, timer), owner)) != owner:
                yield index.finding("T205", part, "/timers", name=name, first=former, second=owner)
        key = state.get("key")
        if not isinstance(key, dict):
            continue
        values: set[bytes] = set()
        yield from _check_keys(index, part, name, key, values=values)
        mine = (key.get("kind"), (frozenset(values), key.get("unknown")) if values else None, _keys_text(key))
        first = keys.setdefault(name, mine)
        if mine[0] != first[0] or (mine[1] and first[1] and mine[1] != first[1]):
            yield index.finding("T205", part, "/state/key", name=name, first=first[2], second=mine[2])
        elif mine[1]:
            keys[name] = mine


def _keys_text(key: Json) -> str:
    values = items_of(key, "values")
    others = ", others are dead letters" if key.get("unknown") == "dead_letter" else ""
    return f'keys of kind "{key.get("kind")}"' + (f", {shown_json(values)}{others}" if values else "")


def _check_presence(index: Index, part: Part, kind: str) -> Iterator[Diagnostic]:
    if kind in STATE_KINDS and "state" not in part.value:
        reason, fix = f'a step of kind "{kind}" needs the property "state"', 'add "state": name, codec and key'
        yield index.finding("T102", part, reason=reason, fix=fix)
    elif kind not in STATE_KINDS and "state" in part.value:
        reason = f'a step of kind "{kind}" has no state'
        fix = f'remove it, or write the kind "state_{kind}"' if kind.startswith("computation") else "remove it"
        yield index.finding("T102", part, "/state", reason=reason, fix=fix)


def _check_keys(index: Index, part: Part, name: str, key: Json, *, values: set[bytes]) -> Iterator[Diagnostic]:
    for number, value in enumerate(items_of(key, "values")):
        pointer = f"/state/key/values/{number}"
        try:
            data = key_bytes(value)
        except (binascii.Error, UnicodeEncodeError, ValueError) as error:
            text = {"reason": f"{shown_json(value)} is not a key; {error}", "fix": "write standard base64 with padding"}
            yield index.finding("T102", part, pointer, **text)
            continue
        if data is None:
            continue
        if data in values:
            yield index.finding("T203", part, pointer, what=f'key {shown_json(value)} of state "{name}"', kind="key")
        values.add(data)


def key_bytes(value: Any) -> bytes | None:
    r"""Return the bytes of a key that a document lists for a state; None if the value has no valid form.

    Raises:
        ValueError: The text is not base64.

    Example:
        >>> key_bytes("a"), key_bytes(7), key_bytes({"base64": "/w=="})
        (b'a', b'\x00\x00\x00\x00\x00\x00\x00\x07', b'\xff')
    """
    if isinstance(value, str):
        return value.encode("utf-8")
    if type(value) is int and 0 <= value < 1 << 64:
        return value.to_bytes(8, "big")
    if isinstance(value, dict) and isinstance(value.get("base64"), str):
        return base64.b64decode(value["base64"], validate=True)
    return None


def check_addresses(index: Index) -> Iterator[Diagnostic]:
    """Check that hosts are valid, and that sources listen at different addresses."""
    seen: dict[tuple[str, int], str] = {}
    for part in index.parts:
        host, port = part.text("host"), part.value.get("port")
        if part.kind == "steps" or not host or type(port) is not int:
            continue
        if any(sign.isspace() or not sign.isprintable() or sign in "/@," for sign in host):
            values = {"what": part.kind[:-1], "value": shown_json(host), "reason": "no host has such characters"}
            yield index.finding("T211", part, "/host", **values)
        elif host.count(":") == 1:  # exactly one colon: an IPv6 address has more
            reason = 'the port belongs into property "port"'
            values = {"what": part.kind[:-1], "value": shown_json(host), "reason": reason}
            yield index.finding("T211", part, "/host", **values)
        if part.kind == "sources" and port:
            name = part.text("name")
            first = seen.setdefault((host, port), part.path)
            if first != part.path:
                other = next(known.text("name") for known in index.parts if known.path == first)
                what = f'address {host}:{port} (of sources "{other}" and "{name}")'
                yield index.finding("T203", part, "/port", what=what, kind="address")


RULES: tuple[Callable[[Index], Iterator[Diagnostic]], ...] = (
    check_names,
    check_sinks,
    check_paths,
    check_workers,
    check_inputs,
    check_states,
    check_addresses,
    check_outputs,
    check_windows,
    check_times,
    check_components,
    check_ends,
    check_brokers,
    check_topics,
    check_message_keys,
)


def check_meaning(index: Index) -> Iterator[Diagnostic]:
    """Yield the findings of all rules about the meaning of a topology, which the schema cannot express."""
    for rule in RULES:
        yield from rule(index)
