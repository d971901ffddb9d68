"""Compares two versions of an application: after each change, can the new one continue the checkpoint of the old one?

A checkpoint holds four things with which a new version must be able to continue. The journal holds messages as they
were received, so steps may change, but each source must still exist with its framing. State is stored under the state's
name at one place of the plan. The outbox holds output by sink. Ports stay with their parts (`plan.port`). Messages
between steps exist for one micro-batch only, which is repeated as a whole. In real-time mode results are sent before
their input is committed. So there a changed program may also be refused after a kill.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.match import match_parts
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.plan.shape import ShapeChange, compare_shapes, new_fields
from wallaroo_runtime.topology.model import (
    ConnectorSource,
    KafkaSink,
    KafkaSource,
    Part,
    Sink,
    Source,
    SparkSink,
    SparkSource,
    Step,
    TcpSink,
    TcpSource,
    Topology,
    Window,
)
from wallaroo_runtime.topology.worker import Worker

ADDRESSES = ("--in", "-i", "--out", "-o")


class Impact(IntEnum):
    """The effect of a change on a checkpoint of the old version."""

    SAFE = 0
    UNKNOWN = 1
    NEEDS_DRAIN = 2
    BREAKS_STATE = 3


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two versions.

    Attributes:
        impact: The effect on a checkpoint of the old version.
        path: Path of the part in the new version, or in the old one if the part is gone; empty if no part has changed.
        text: Describes the change with the part's name, and its consequence if it has one.
        is_interface: Whether the interface hash changes. Else the change is of code, addresses or the start of workers.
        is_start: Whether a worker starts in another way, so that the same code may give other results.
        shape: The difference in the shape of a state. A user may accept its effect.
    """

    impact: Impact
    path: str
    text: str
    is_interface: bool = True
    is_start: bool = False
    shape: ShapeChange | None = None


def compare(old: Topology, new: Topology) -> list[Change]:
    """Return every difference between two versions, the gravest first, and equally grave ones in document order."""
    if old.name != new.name:
        text = f'application was "{old.name}" and is "{new.name}"'
        return [Change(Impact.BREAKS_STATE, "", f"{text}; a checkpoint belongs to one application")]
    changes = [
        *_worker_changes(old, new),
        *_application_changes(old, new),
        *_part_changes(old, new),
        *_state_changes(old, new),
        *_plan_changes(old, new),
    ]
    return sorted(changes, key=lambda change: -change.impact)


def called(part: Part) -> str:
    """Return the text that names a part in messages: kind, name and path, e.g. `step "count" (0/steps/1)`."""
    return f'{part.path.split("/")[1][:-1]} "{part.name}" ({part.path})'


def _was(what: str, before: object, after: object) -> str:
    return f"{what} was {before} and is {after}"


def _worker_changes(old: Topology, new: Topology) -> Iterator[Change]:
    before = {worker.name: worker for worker in old.workers}
    for worker in new.workers:
        known = before.pop(worker.name, None)
        if known is None:
            yield Change(Impact.SAFE, "", f'worker "{worker.name}" is new', False)
            continue
        texts = {
            "language": (known.language, worker.language),
            "code": (known.code_hash, worker.code_hash),
            "args": (known.args, worker.args),
            "command": (without_places(known.command), without_places(worker.command)),
            "directory": (known.directory, worker.directory),
            "SDK version": (known.sdk_version, worker.sdk_version),
            "call_deadline_ms": (known.call_deadline_ms, worker.call_deadline_ms),
        }
        for what, (was, now) in texts.items():
            if was != now:
                text = f'{what} of worker "{worker.name}" changed'
                yield Change(Impact.SAFE, "", text, False, _is_start(what, known, worker))
    for name in before:
        yield Change(Impact.SAFE, "", f'worker "{name}" is gone', False)


def _is_start(what: str, old: Worker, new: Worker) -> bool:
    """Say whether a changed setting starts the worker in another way, so that the same code may give other results.

    Addresses among the arguments are ignored, because they belong to sources and sinks. Folders in the command are
    ignored, too: the code hash identifies the program even if it moves, e.g. because `go run` builds it in a new place.
    """
    if what == "args":
        return without_addresses(old.args) != without_addresses(new.args)
    return what not in ("code", "directory")


def without_places(command: Iterable[str]) -> list[str]:
    """Return a command with file names in place of absolute paths, to compare commands of a program that has moved.

    Example:
        >>> without_places(["/usr/bin/node", "--strict", "/tmp/b001/app.js"])
        ['node', '--strict', 'app.js']
    """
    return [part.rpartition("/")[2] if part.startswith("/") else part for part in command]


def without_addresses(args: Iterable[str]) -> list[str]:
    """Return a program's arguments without addresses of sources and sinks, to compare the rest with other arguments.

    Example:
        >>> without_addresses(["--in", "h:1", "--out=h:2", "-o", "h:2", "--strict", "1"])
        ['--strict', '1']
    """
    left, kept = iter(args), []
    for arg in left:
        if arg in ADDRESSES:
            next(left, None)
        elif arg.partition("=")[0] not in ADDRESSES:
            kept.append(arg)
    return kept


def _application_changes(old: Topology, new: Topology) -> Iterator[Change]:
    if old.on_error != new.on_error:
        policies = [topology.on_error or "not said" for topology in (old, new)]
        yield Change(Impact.SAFE, "", _was("on_error of the application", *policies))
    names = [pipeline.name for pipeline in old.pipelines], [pipeline.name for pipeline in new.pipelines]
    if sorted(names[0]) == sorted(names[1]) and names[0] != names[1]:
        yield Change(Impact.SAFE, "", "pipelines stand in another order; their parts keep their ports")
    else:
        gone = [f'"{name}"' for name in names[0] if name not in names[1]]
        added = [f'"{name}"' for name in names[1] if name not in names[0]]
        if gone or added:
            text = f"pipelines: gone {', '.join(gone) or 'none'}; new {', '.join(added) or 'none'}"
            yield Change(Impact.SAFE, "", text)


def _part_changes(old: Topology, new: Topology) -> Iterator[Change]:
    matched = match_parts(old, new)
    before = {part.path: part for part in old.parts()}
    for part in new.parts():
        path = matched.get(part.path)
        if path is None:
            yield _new(part)
        else:
            yield from _differences(before[path], part, matched)
    for path, part in before.items():
        if path not in matched.values():
            yield _gone(part)
            yield from _gone_functions(part, None) if isinstance(part, Step) else ()


def _new(part: Part) -> Change:
    if isinstance(part, KafkaSource | SparkSource):
        text = f"{called(part)} is new; Spark's checkpoint has the offsets of the sources that it began with"
        return Change(Impact.BREAKS_STATE, part.path, text)
    return Change(Impact.SAFE, part.path, f"{called(part)} is new")


def _gone(part: Part) -> Change:
    if isinstance(part, KafkaSource | SparkSource):
        text = f"{called(part)} is gone; Spark's checkpoint has the offsets of the sources that it began with"
        return Change(Impact.BREAKS_STATE, part.path, text)
    if isinstance(part, Source):
        text = f"{called(part)} is gone; its messages in the journal could no longer be decoded"
        return Change(Impact.NEEDS_DRAIN, part.path, text)
    if isinstance(part, Sink):
        text = f"{called(part)} is gone; output that waits for it would never be delivered"
        return Change(Impact.NEEDS_DRAIN, part.path, text)
    return Change(Impact.SAFE, part.path, f"{called(part)} is gone")


def _differences(old: Part, new: Part, matched: Mapping[str, str]) -> Iterator[Change]:
    safe: list[Setting] = [
        ("name", f'"{old.name}"', f'"{new.name}"'),
        ("kind", old.kind, new.kind),
        ("worker", f'"{old.worker}"', f'"{new.worker}"'),
        ("on_error", old.on_error or "inherited", new.on_error or "inherited"),
    ]
    safe.extend(_settings(old, new))
    if isinstance(old, TcpSource) and isinstance(new, TcpSource) and old.framing != new.framing:
        text = _was(f"framing of {called(new)}", _framing(old), _framing(new))
        yield Change(Impact.NEEDS_DRAIN, new.path, f"{text}; the journal holds messages as they came")
    for what, was, now_is in _spark_identity(old, new):
        if was != now_is:
            text = _was(f"{what} of {called(new)}", was, now_is)
            yield Change(Impact.BREAKS_STATE, new.path, f"{text}; Spark's checkpoint has the offsets of the former")
    yield from _record_changes(old, new)
    if not isinstance(old, Source) and not isinstance(new, Source):
        now = [matched.get(path, f"{path} (new)") for path in new.inputs]
        if list(old.inputs) != now:
            text = _was(f"input of {called(new)}", ", ".join(old.inputs), ", ".join(now))
            yield Change(Impact.SAFE, new.path, text)
    if isinstance(old, Step) and isinstance(new, Step) and old.state and new.state:
        safe.append(("ttl_ms", old.state.ttl_ms or "none", new.state.ttl_ms or "none"))
        safe.append(("unknown keys", old.state.key.unknown, new.state.key.unknown))
        safe.append(("number of listed keys", len(old.state.key.values), len(new.state.key.values)))
        if set(old.state.key.values) != set(new.state.key.values) and safe[-1][1] == safe[-1][2]:
            yield Change(Impact.SAFE, new.path, f"listed keys of {called(new)} changed")
    if isinstance(old, Step) and isinstance(new, Step):
        safe += [(what, _listed(getattr(old, what)), _listed(getattr(new, what))) for what in ("visits", "timers")]
        yield from _gone_functions(old, new)
        if old.time == "event" and new.time == "ingest" and not new.window:
            text = _was(f"time of {called(new)}", old.time, new.time)
            yield Change(Impact.UNKNOWN, new.path, f"{text}; states and timers of old data would be due at once")
        else:
            safe.append(("time", old.time or "none", new.time or "none"))
    for what, was, now_is in safe:
        if was != now_is:
            yield Change(Impact.SAFE, new.path, _was(f"{what} of {called(new)}", was, now_is))
    if _address(old) != _address(new):
        yield Change(Impact.SAFE, new.path, _was(f"address of {called(new)}", _address(old), _address(new)), False)


def _gone_functions(old: Step, new: Step | None) -> Iterator[Change]:
    """Yield a change for the visits and for the timers that a step no longer has; `new` is None if the step is gone."""
    part = new or old
    fates = {"visit": "come to no key if it is in the journal", "timer": "not run for keys that have set it"}
    for what, text in fates.items():
        if gone := sorted(set(getattr(old, f"{what}s")) - set(getattr(new, f"{what}s", ()))):
            text = f"{what} {_listed(gone)} of {called(part)} is gone; it would {text}"
            yield Change(Impact.NEEDS_DRAIN, part.path, text)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names) or "none"


def _record_changes(old: Part, new: Part) -> Iterator[Change]:
    """Yield a change if `table` of a Kafka source or `content` of a Kafka sink differs.

    The new value may not fit records that were read before, or output that waits for delivery.
    """
    if isinstance(old, KafkaSource) and isinstance(new, KafkaSource) and old.table != new.table:
        text = _was(f"table of {called(new)}", old.table, new.table)
        if new.table:
            text = f"{text}; Spark's checkpoint goes on after the records that were read, so the table would miss them"
        yield Change(Impact.BREAKS_STATE if new.table else Impact.SAFE, new.path, text)
    if isinstance(old, KafkaSink) and isinstance(new, KafkaSink) and old.content != new.content:
        text = _was(f"content of {called(new)}", old.content or "value", new.content or "value")
        yield Change(Impact.NEEDS_DRAIN, new.path, f"{text}; output that waits for its egress is in the former")


Setting = tuple[str, object, object]
SETTINGS: Mapping[type[Part], tuple[str, ...]] = {
    TcpSource: ("max_message_bytes",),
    ConnectorSource: ("max_message_bytes", "max_credits", "refill_credits"),
    KafkaSource: ("max_message_bytes", "start", "partitions", "options", "content", "create"),
    KafkaSink: ("topic", "options", "exactly_once", "create"),
    SparkSource: ("max_message_bytes", "options", "value", "key", "timestamp"),
    SparkSink: ("format", "options", "value", "schema"),
}


def _settings(old: Part, new: Part) -> Iterator[Setting]:
    """Yield the settings of a source, sink or window that may differ, with their old and new values."""
    for name in SETTINGS.get(type(new), ()):
        yield name, getattr(old, name), getattr(new, name)
    if isinstance(old, Step) and isinstance(new, Step) and old.window and new.window:
        for name in ("gap_ms", "delay_ms", "late", "flush_ms"):
            yield name, getattr(old.window, name), getattr(new.window, name)


def _spark_identity(old: Part, new: Part) -> Iterator[Setting]:
    if isinstance(old, KafkaSource) and isinstance(new, KafkaSource):
        yield "topic", old.topic, new.topic
    if isinstance(old, SparkSource) and isinstance(new, SparkSource):
        yield "format", old.format, new.format
        yield "schema", old.schema, new.schema


def _address(part: Part) -> str:
    if isinstance(part, TcpSource | ConnectorSource | TcpSink):
        return f"{part.host}:{part.port}"
    return ",".join(part.brokers) if isinstance(part, KafkaSource | KafkaSink) else ""


def _framing(source: TcpSource) -> str:
    framing = source.framing
    return f"{framing.kind} with {framing.header_bytes} bytes" if framing.header_bytes else framing.kind


def _state_changes(old: Topology, new: Topology) -> Iterator[Change]:
    before, after = old.states(), new.states()
    matched = {path: called_by for called_by, path in match_parts(old, new).items()}
    steps = {step.path: step for step in new.state_steps()}
    for name, step in before.items():
        now = after.get(name)
        if now is None:
            other = steps.get(matched.get(step.path, ""))
            text, path = f'state "{name}" of {called(step)} is gone', step.path
            if other is not None and other.state is not None and other.state.name not in before:  # it was renamed
                text, path = _was(f"state of {called(other)}", f'"{name}"', f'"{other.state.name}"'), other.path
            yield Change(Impact.BREAKS_STATE, path, f"{text}; what it has kept would be lost")
            continue
        yield from _one_state(name, (old, step), (new, now))


def _one_state(name: str, before: tuple[Topology, Step], after: tuple[Topology, Step]) -> Iterator[Change]:
    was, now = before[1], after[1]
    kinds = [step.state.key.kind if step.state else "" for step in (was, now)]
    if kinds[0] != kinds[1]:
        text = _was(f'kind of key of state "{name}" of {called(now)}', *kinds)
        yield Change(Impact.BREAKS_STATE, now.path, f"{text}; messages would not find the state that was kept")
    windows = [window_shape(step.window) for step in (was, now)]
    if windows[0] != windows[1]:
        text = _was(f'window of state "{name}" of {called(now)}', *windows)
        yield Change(Impact.BREAKS_STATE, now.path, f"{text}; what it has gathered would not fit")
    languages = [topology.worker(step.worker).language for topology, step in (before, after)]
    if languages[0] != languages[1]:
        text = _was(f'language of state "{name}" of {called(now)}', *languages)
        yield Change(Impact.BREAKS_STATE, now.path, f"{text}; it cannot read what was kept")
        return
    components = [topology.component(step.worker, f"{step.path}/state") for topology, step in (before, after)]
    classes = [component.symbol if component else "" for component in components]
    if all(classes) and classes[0] != classes[1]:
        text = _was(f'class of state "{name}" of {called(now)}', *classes)
        yield Change(Impact.BREAKS_STATE, now.path, f"{text}; it cannot read what was kept", False)
    elif shape := compare_shapes(before, after):
        text = f'state "{name}" of {called(now)}'
        if not shape.is_known:
            yield Change(Impact.UNKNOWN, now.path, f"{text} {shape.why}", False)
        else:
            text = f"{_was(text, shape.was, shape.now)}; {shape.why}"
            yield Change(Impact.BREAKS_STATE, now.path, text, False, shape=shape)
    elif added := new_fields(before, after):
        yield Change(Impact.SAFE, now.path, f'state "{name}" of {called(now)} has the new {added}', False)


def window_shape(window: Window | None) -> str:
    """Return in words the properties of a window on which its stored state depends."""
    if window is None:
        return "none"
    if window.kind == "count":
        return f"{window.count} messages"
    if window.kind == "session":
        return f"sessions by {window.time} time"
    return f"{window.range_ms} ms every {window.slide_ms} ms by {window.time} time"


def _plan_changes(old: Topology, new: Topology) -> Iterator[Change]:
    """Yield changes after which Spark would not find stored states: another number of shuffles, or other stages."""
    plans = [compile_topology(topology, shuffle_partitions=1) for topology in (old, new)]
    depths = [len(plan.levels) - 1 for plan in plans]
    if depths[0] != depths[1]:
        deepest = _names(plans[1] if depths[1] > depths[0] else plans[0], max(depths))
        text = _was("the number of shuffles", *depths)
        yield Change(Impact.BREAKS_STATE, "", f"{text}, because of state {deepest}; Spark's checkpoint has {depths[0]}")
        return
    places = [_places(plan) for plan in plans]
    steps = new.states()
    for name, place in places[0].items():
        if place != places[1].get(name, place):
            text = _was(f'place of state "{name}" of {called(steps[name])} in the plan', place, places[1][name])
            yield Change(Impact.BREAKS_STATE, steps[name].path, f"{text}; Spark's checkpoint keeps it there")
    stages = [{stage.id for level in plan.levels[1:] for stage in level} for plan in plans]
    if stages[0] != stages[1]:
        text = _was("the stages with state", *(", ".join(sorted(each)) or "none" for each in stages))
        yield Change(Impact.BREAKS_STATE, "", f"{text}; Spark's checkpoint has the former")


def _places(plan: Plan) -> dict[str, str]:
    return {node.state: stage.id for level in plan.levels for stage in level for node in stage.nodes if node.state}


def _names(plan: Plan, level: int) -> str:
    return ", ".join(sorted({f'"{node.state}"' for stage in plan.levels[level] for node in stage.nodes if node.state}))
