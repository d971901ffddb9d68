"""Compares the shape of a state in two versions: can the new version read states that the old version has written?

A shape names the type of each field by its path (`Component.shape`). If a field is gone, its values are lost forever,
because the new version writes states without it. Formats that find fields by name read zero in a renamed field, without
an error.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from wallaroo_runtime.topology.model import Step, Topology
from wallaroo_runtime.topology.worker import Component

STRICT = frozenset({"go"})  # languages whose formats refuse a field of another type
CLASSES = "any "  # in Python, begins the path of a class whose objects a list may hold
SHOWN = 8
# A number type of Go. A wider one reads all values, a narrower one those that fit. `[]uint8` has a form of its own.
NUMBER = re.compile(r"(?<![.\w])(\[\]uint8|u?int|float|complex)(8|16|32|64|128)?\b")
NUMBERS = frozenset({"bool", "complex", "float", "int"})  # number types of Python
PLAIN = NUMBERS | {"bytes", "bytearray", "dict", "frozenset", "list", "set", "str", "tuple"}


@dataclass(frozen=True, slots=True)
class ShapeChange:
    """The difference between the fields of a state's class in two versions, and its effect on stored states.

    Attributes:
        was: The old class with the fields that differ, as text. `...` replaces the other fields.
        now: The new class, in the same form.
        why: The effect on stored states.
        is_known: Whether the effect is known before a run.
        fix: A change with which old states fit, besides undoing the change; empty if there is none.
    """

    was: str
    now: str
    why: str
    is_known: bool = True
    fix: str = ""


def state_component(topology: Topology, step: Step) -> Component | None:
    """Return the topology's entry about the class of a step's state, or else about the step, or None."""
    return topology.component(step.worker, f"{step.path}/state") or topology.component(step.worker, step.path)


def compare_shapes(old: tuple[Topology, Step], new: tuple[Topology, Step]) -> ShapeChange | None:
    """Return the difference between the shapes of a state in two versions; None if old states can be read."""
    workers = [topology.worker(step.worker) for topology, step in (old, new)]
    components = (state_component(topology, step) for topology, step in (old, new))
    is_same = workers[0].code_hash == workers[1].code_hash
    return compare_components(*components, language=workers[1].language, is_same=is_same)


def new_fields(old: tuple[Topology, Step], new: tuple[Topology, Step]) -> str:
    """Return in words the fields that only the new version of a state has; empty if no such field is known."""
    shapes = [component.shape if (component := state_component(*each)) else None for each in (old, new)]
    if shapes[0] is None or shapes[1] is None:
        return ""
    return _listed(sorted(path for path in shapes[1].keys() - shapes[0].keys() if not path.startswith(CLASSES)))


def compare_components(
    before: Component | None, after: Component | None, *, language: str, is_same: bool
) -> ShapeChange | None:
    """Return the difference between the shapes of a state's class in two versions; None if old states can be read.

    Args:
        language: Language of the new version.
        is_same: Whether the code is unchanged. Then differences whose effect only a run would show are ignored.
    """
    shapes = [component.shape if component else None for component in (before, after)]
    names = [component.symbol if component else "a class" for component in (before, after)]
    if shapes[0] is None or shapes[1] is None:
        return None if is_same else ShapeChange(names[0], names[1], "reads old state at the run", is_known=False)
    was, now = shapes[0], shapes[1]
    gone = sorted(was.keys() - now.keys())
    added = sorted(path for path in now.keys() - was.keys() if not path.startswith(CLASSES))
    other = sorted(path for path in was.keys() & now.keys() if was[path].rstrip("!") != now[path].rstrip("!"))
    open_fields: list[str] = []  # fields of which only a run can show what happens
    if language in STRICT:
        narrowed = {path: _narrows(was[path], now[path]) for path in other}
        other = [path for path in other if narrowed[path] is None]
        open_fields = [path for path, narrows in narrowed.items() if narrows]
    if language == "python":  # a restored Python object keeps fields that its class no longer has
        other += [path for path in gone if path.startswith(CLASSES)]
        places = {_place(path) for path in added}
        open_fields = [path for path in gone if _place(path) not in places and not path.startswith(CLASSES)]
        gone = [path for path in gone if _place(path) in places and not path.startswith(CLASSES)]
        open_fields += (own := [path for path in {*gone, *other} if _reads_itself(path, was, now)])
        gone, other = ([path for path in paths if path not in own] for paths in (gone, other))
    needed = [path for path in added if now[path].endswith("!") and not _reads_itself(path, was, now)]
    changed = [*other, *open_fields]
    texts = (_text(names[0], was, [*gone, *changed]), _text(names[1], now, [*added, *changed]))
    if gone:
        return ShapeChange(*texts, f"what was kept in {_listed(gone)} would be lost")
    if wrong := [path for path in other if language in STRICT or _is_other_kind(was[path], now.get(path))]:
        return ShapeChange(*texts, f"what was kept in {_listed(wrong)} cannot be read")
    if "" in other:
        return ShapeChange(*texts, f"what was kept in {_listed(other)} cannot be read")
    if needed:
        example = f"`{needed[0].rpartition('.')[2]} = None`"
        fix = f"give {_listed(needed)} a value in the class's body, such as {example} (no default_factory)"
        return ShapeChange(*texts, f"states that were kept have none; {fix}", fix=fix)
    unsure = sorted({*changed, *(path for path in now if now[path].rstrip("!").endswith("?"))})
    if unsure and not is_same:
        return ShapeChange(*texts, f"reads old state at the run, in {_listed(unsure)}", is_known=False)
    return None


def _narrows(was: str, now: str) -> bool | None:
    """Say whether a number type of Go is narrower now; None if the types differ in another way.

    Example:
        >>> _narrows("map[string]int", "map[string]int32"), _narrows("int32", "int"), _narrows("int", "uint")
        (True, False, None)
    """
    if NUMBER.sub(r"\1", was) != NUMBER.sub(r"\1", now):
        return None
    pairs = zip(NUMBER.finditer(was), NUMBER.finditer(now), strict=True)
    return any(int(new[2] or 64) < int(old[2] or 64) for old, new in pairs)


def _is_other_kind(was: str, now: str | None) -> bool:
    """Say whether the types are two different plain types of Python. Then no code works with both."""
    kinds = [(text or "").rstrip("!").partition("[")[0] for text in (was, now)]
    is_plain = all(kind in PLAIN and "|" not in (text or "") for kind, text in zip(kinds, (was, now), strict=True))
    return is_plain and kinds[0] != kinds[1] and not NUMBERS.issuperset(kinds)


def _reads_itself(path: str, was: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Say whether a class, or a class around it, has code of its own that reads old states (in Python).

    Example:
        >>> _reads_itself("count", {"": "app.Total"}, {"": "app.Total?"})
        True
        >>> _reads_itself("count", {"": "app.Total"}, {"": "app.Sum?"})
        False
    """
    if path.startswith(CLASSES):
        return False
    names = [_class_name(shape.get("", "")) for shape in (was, now)]
    places = [""] if names[0] == names[1] else []
    places += [path[:at] for at in (*(each.start() for each in re.finditer(r"[.\[]", path)), len(path)) if path[:at]]
    return any(now.get(place, "").rstrip("!").endswith("?") for place in places)


def _class_name(text: str) -> str:
    return text.rstrip("!?").partition(" ")[0]


def _place(path: str) -> str:
    """Return the path of the object that contains a field."""
    return path.rpartition(".")[0]


def _listed(paths: list[str]) -> str:
    named = [f'field "{path}"' if path else "it" for path in paths[:SHOWN]]
    return ", ".join(named) + (f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else "")


def _text(name: str, shape: Mapping[str, str], paths: list[str]) -> str:
    fields = [f"{path} {shape[path].rstrip('!?')}".strip() for path in sorted(paths) if path in shape]
    more = [f"and {len(fields) - SHOWN} more"] if len(fields) > SHOWN else []
    more += ["..."] if any(path and not path.startswith(CLASSES) for path in shape.keys() - set(paths)) else []
    return f"{name} {{{', '.join(fields[:SHOWN] + more)}}}"
