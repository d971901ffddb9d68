"""The shapes (types of all fields) of a program's states. They decide whether a changed program can read old states.

A pickle contains the name of a class and the attributes of the object. So a new field is missing in old states, unless
the class has a value for it, and an old value keeps its old type. No user code runs to find the shape: it is derived,
as far as possible, from annotations, slots and values of the classes, and from the source of their methods.
"""

import ast
import hashlib
import inspect
import sys
import types
import typing
from collections import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

from wallaroo.check.change import changes, slots_of
from wallaroo.check.source_tree import source_tree
from wallaroo.message.serialization import Serializer

MAX_FIELDS, MAX_CHARACTERS = 1000, 1000
MUST, UNSURE = "!", "?"  # ends of types: old states must have the field; the type may be unable to read old states
# A class with one of these methods controls how its objects are written and read.
HOOKS = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
_DISPLAYS = {
    ast.List: list, ast.ListComp: list, ast.Dict: dict, ast.DictComp: dict, ast.Set: set, ast.SetComp: set,
    ast.Tuple: tuple, ast.JoinedStr: str,
}  # fmt: skip
_CLOSED = (str, bytes, bytearray, range)  # collections that cannot contain objects of the program


def state_shape(maker: Any, serializer: Serializer, is_own: Callable[[str], bool]) -> dict[str, str] | None:
    """Return the type of each field of a state, by the field's path; None if the types cannot be known.

    Args:
        maker: Makes the state: a class, a function, or an object with `build`.
        serializer: The application's functions.
        is_own: Takes the name of a module, and returns whether the module is a part of the program.

    Example:
        >>> @dataclass
        ... class Total:
        ...     count: int
        ...     by_day: dict[str, float]
        >>> state_shape(Total, Serializer(), lambda module: module == Total.__module__)
        {'': 'wallaroo.emit.state_shape.Total', 'by_day': 'dict[str, float]!', 'count': 'int!'}
    """
    if serializer.is_custom:
        return None
    shaper = _Shaper(is_own)
    try:
        text = shaper.of_maker(maker)
    except (SyntaxError, OSError, TypeError, ValueError, RecursionError):
        return None
    if text is None:
        return None
    shape = {"": text, **shaper.fields}
    if shaper.is_open:
        shape |= {f"any {name}": text for name, text in _own_classes(is_own, shaper.root)}
    if len(shape) > MAX_FIELDS:
        return None
    return {path: shape[path] if len(shape[path]) <= MAX_CHARACTERS else _short(shape[path]) for path in sorted(shape)}


def _unsure(text: str) -> str:
    return text.rstrip(MUST + UNSURE) + UNSURE


def _short(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{text[:80]}… {digest}" + (text[-1] if text[-1] in MUST + UNSURE else "")


def codec_text(codec: Any) -> str:
    """Return a codec of Goka as text for a shape. `?` marks a codec of the program: it may fail on old states."""
    kind = type(codec)
    return kind.__name__ if kind.__module__.startswith("wallaroo.") else named(kind) + UNSURE


def named(cls: type) -> str:
    """Return the name under which a pickle refers to a class."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _own_classes(is_own: Callable[[str], bool], root: type) -> Iterator[tuple[str, str]]:
    """Yield name and shape of each class of the program, for states that may contain objects of any class."""
    for name, module in sorted(sys.modules.items()):
        if not is_own(name):
            continue
        for cls in list(vars(module).values()):
            is_data = isinstance(cls, type) and cls.__module__ == name and not issubclass(cls, BaseException)
            if (
                is_data
                and cls not in root.__mro__  # not `issubclass`, which raises an error for some protocols
                and not any(part.__module__.partition(".")[0] == "wallaroo" for part in cls.__mro__)
            ):
                inner = _Shaper(is_own)
                text = inner.text(cls, "")
                parts = [f"{path}: {kind}" for path, kind in sorted(inner.fields.items())]
                yield named(cls), f"{text} ({', '.join(parts)})" if parts else text


@dataclass(slots=True)
class _Shaper:
    """Makes the shape of a state: the type of the state, and the types of the fields of the program's classes by path.

    Attributes:
        is_open: Whether a part of the state may be or contain any object.
        within: The classes that enclose the present one.
        root: The class of the state, if it belongs to the program.
    """

    is_own: Callable[[str], bool]
    fields: dict[str, str] = field(default_factory=dict)
    is_open: bool = False
    within: list[type] = field(default_factory=list)
    root: type = object

    def of_maker(self, maker: Any) -> str | None:
        """Return as text the type of the objects that `maker` makes: a class, a function, or an object with `build`."""
        if isinstance(maker, type) and not callable(vars(maker).get("build")):
            return self.text(maker, "")
        inner = getattr(maker, "state_class", None)  # e.g. `maker` is a StateBuilder
        if inner is not None:
            return self.of_maker(inner)
        build = getattr(maker, "build", maker)
        if not inspect.isroutine(build):
            return self.text(type(maker), "") if not callable(maker) else None
        hint = _hints(build).get("return")
        if hint is not None:
            return self.text(hint, "")
        tree = source_tree(build)
        returned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None]
        returned += [node.body for node in ast.walk(tree) if isinstance(node, ast.Lambda)][:1]
        texts = {self.value(each, "", getattr(build, "__globals__", {})) for each in returned}
        return texts.pop() if len(texts) == 1 else None

    def text(self, hint: Any, path: str) -> str:
        """Return a type or an annotation as text. If it is a class of the program, record its fields below `path`."""
        if hint is None or hint is type(None):
            return "None"
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            return " | ".join(sorted(self.text(each, path) for each in arguments))
        if origin in (typing.Annotated, typing.ClassVar, typing.Final):
            return self.text(arguments[0], path)
        if isinstance(origin, type) and arguments:
            return self._generic(origin, arguments, path)
        if isinstance(hint, type):
            return self._class(hint, path)
        self.is_open = True
        return str(hint)

    def _generic(self, origin: type, arguments: Sequence[Any], path: str) -> str:
        places = [f"{path}[key]", f"{path}[]"] if issubclass(origin, abc.Mapping) and len(arguments) > 1 else []
        inner = [
            "..." if each is Ellipsis else self.text(each, places[at] if at < len(places) else f"{path}[]")
            for at, each in enumerate(arguments)
        ]
        text = f"{self._class(origin, path, is_filled=True)}[{', '.join(inner)}]"
        return _unsure(text.replace(UNSURE, "")) if UNSURE in text else text

    def _class(self, cls: type, path: str, *, is_filled: bool = False) -> str:
        if not self.is_own(cls.__module__) or cls in self.within:
            self.is_open |= cls is object or (not is_filled and issubclass(cls, abc.Collection) and cls not in _CLOSED)
            return named(cls)
        if issubclass(cls, Enum):
            return f"{named(cls)} of {', '.join(f'{each.name}={each.value!r}' for each in cls)}"
        self.root = cls if not path else self.root
        self.within.append(cls)
        try:
            return self._own(cls, path)
        finally:
            self.within.pop()

    def _own(self, cls: type, path: str) -> str:
        """Return a class of the program as text, and record its fields."""
        parts = [part for part in cls.__mro__ if part is not object and part.__module__ not in ("typing", "abc")]
        outer = [part for part in parts if not self.is_own(part.__module__)]
        hooks = [vars(part)[name] for part in parts for name in HOOKS if name in vars(part)]
        ordered = _positional(cls, hooks)
        hooks = [] if ordered else [hook for hook in hooks if not _of_dataclasses(hook)]
        fields: dict[str, str] = {}
        for part in reversed([part for part in parts if part not in outer]):
            fields |= self._fields(part, path, cls)
        start = f"{path}." if path else ""
        for name, text in fields.items():
            self.fields[start + name] = _unsure(text) if hooks else text
        text = named(cls)
        # A base class from outside of the program may have more data, e.g. the items of a dict.
        if outer:
            self.is_open, text = True, f"{text} on {', '.join(map(named, outer))}"
        slots = sorted({name for part in parts for name in slots_of(part)})
        if ordered or slots:
            text = f"{text} of {', '.join(ordered or slots)}"
        return text + UNSURE if hooks else text

    def _fields(self, part: type, path: str, cls: type) -> dict[str, str]:
        """Return the fields that a class itself declares: by annotations, by values, and by assignments in methods."""
        hints = {name: hint for name, hint in _hints(part).items() if name in _annotations(part)}
        of_class = {each.name for each in fields(part)} if is_dataclass(part) else set()
        below = f"{path}." if path else ""
        declared = {}
        for name, value in vars(part).items():
            is_field = not (name.startswith("__") or callable(value) or hasattr(value, "__get__"))
            if is_field and name not in slots_of(part) and not isinstance(value, (staticmethod, classmethod)):
                declared[name] = self.text(hints.pop(name, None) or type(value), below + name)
        assigned = dict(self._assigned(part, below, set(hints)))
        for name, hint in hints.items():
            if typing.get_origin(hint) is not typing.ClassVar:
                text = self.text(hint, below + name)
                must = name in of_class or assigned.get(name, "").endswith(MUST)
                declared[name] = text.rstrip(MUST) + MUST if must else text
        for name, text in assigned.items():
            has_value = name in declared or hasattr(cls, name) and not hasattr(getattr(cls, name), "__get__")
            if name not in declared:
                declared[name] = text.rstrip(MUST) if has_value and text.endswith(MUST) else text
        return declared

    def _assigned(self, part: type, below: str, known: set[str]) -> Iterator[tuple[str, str]]:
        """Yield the fields that methods assign, those of `__init__` last: they win, because each object has these."""
        try:
            tree = source_tree(part)
        except (OSError, TypeError, SyntaxError):
            if "__init__" in vars(part) and not is_dataclass(part):
                self.is_open = True
                yield "", f"unknown{UNSURE}"
            return
        if any(map(_sets_by_name, ast.walk(tree))):
            self.fields[f"any attribute of {named(part)}"] = f"unknown{UNSURE}"
        names = vars(sys.modules.get(part.__module__, typing))
        methods = [node for node in vars(tree.body[0])["body"] if isinstance(node, ast.FunctionDef)]
        for method in sorted(methods, key=lambda each: each.name == "__init__"):
            is_first = method.name == "__init__"
            for name, value, annotation in _targets(method):
                text = "" if name in known else self._of_target(method, value, annotation, below + name, names)
                yield name, text.rstrip(MUST) + MUST if is_first else text

    def _of_target(
        self, method: ast.FunctionDef, value: ast.expr | None, annotation: ast.expr | None, path: str, names: Any
    ) -> str:
        """Return as text the type of a value that a method assigns: from its annotation, else from the expression."""
        if annotation is None:
            return self.value(value, path, _names_in(method, names))
        hint = _evaluated(annotation, names)
        if isinstance(hint, str):
            hint = _evaluated(ast.parse(hint, mode="eval").body, names)
        return self._unknown(annotation) if isinstance(hint, ast.expr) else self.text(hint, path)

    def value(self, node: ast.expr | None, path: str, names: Mapping[str, Any]) -> str:
        """Return as text the type of an expression's value, without running the expression."""
        if isinstance(node, ast.Constant):
            return self.text(type(node.value), path)
        kind: Any = next((kind for display, kind in _DISPLAYS.items() if isinstance(node, display)), None)
        if isinstance(node, (ast.Name, ast.Attribute)):
            value = _evaluated(node, names)
            if isinstance(value, ast.expr):
                return self._unknown(node)
            kind = type(value)
        elif isinstance(node, ast.Call):
            called = _evaluated(node.func, names)
            if not isinstance(called, type) and getattr(called, "__module__", None) in sys.stdlib_module_names:
                return ast.unparse(node)
            kind = called if isinstance(called, type) else None
        return self._unknown(node) if kind is None else self.text(kind, path)

    def _unknown(self, node: ast.expr | None) -> str:
        self.is_open = True
        return f"{ast.unparse(node) if node is not None else 'unknown'}{UNSURE}"


def _sets_by_name(node: ast.AST) -> bool:
    """Return whether code may set attributes whose names are not in the source, e.g. by `setattr`."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "vars")
    return is_call or isinstance(node, ast.Attribute) and node.attr in ("__dict__", "__setattr__")


def _targets(method: ast.FunctionDef) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    """Yield attribute, value and annotation of each assignment such as `self.count: int = 0` in a method."""
    own = method.args.args[0].arg if method.args.args else ""
    for change in changes(method):
        target, is_assigned = change.target, isinstance(change.statement, (ast.Assign, ast.AnnAssign))
        if is_assigned and isinstance(target, ast.Attribute) and ast.unparse(target.value) == own:
            yield target.attr, change.value, getattr(change.statement, "annotation", None)


def _names_in(method: ast.FunctionDef, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known values of names in a method: globals and defaults of parameters, but no local variables."""
    local = {node.id for node in ast.walk(method) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    known = {name: value for name, value in names.items() if name not in local}
    parameters = [*method.args.posonlyargs, *method.args.args]
    defaults = dict(zip((each.arg for each in reversed(parameters)), reversed(method.args.defaults), strict=False))
    defaults |= {
        each.arg: default
        for each, default in zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True)
        if default
    }
    for each in (*parameters, *method.args.kwonlyargs):
        default = defaults.get(each.arg)
        value = _evaluated(default, names) if default is not None and each.arg not in local else method
        known.pop(each.arg, None)
        if not isinstance(value, ast.AST):
            known[each.arg] = value
    return known


def _evaluated(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression of names, attributes, constants and subscripts; else return the node itself."""
    allowed = (
        ast.Name,
        ast.Attribute,
        ast.Subscript,
        ast.Constant,
        ast.Tuple,
        ast.BinOp,
        ast.BitOr,
        ast.Load,
        ast.List,
    )
    if not all(isinstance(each, allowed) for each in ast.walk(node)):
        return node
    try:
        return eval(compile(ast.Expression(node), "<shape>", "eval"), dict(names))  # noqa: S307 - names alone
    except Exception:
        return node


def _hints(owner: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(owner)
    except Exception:  # e.g. an annotation has a name that only a type checker knows
        return dict(_annotations(owner))


def _annotations(owner: Any) -> Mapping[str, Any]:
    return inspect.get_annotations(owner) if isinstance(owner, type) else getattr(owner, "__annotations__", {})


def _of_dataclasses(hook: Any) -> bool:
    return getattr(hook, "__module__", "") == "dataclasses"


def _positional(cls: type, hooks: Sequence[Any]) -> list[str]:
    """Return the field names of a class whose pickles have only the values, in order; else an empty list."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return list(cls._fields)
    if is_dataclass(cls) and hooks and all(map(_of_dataclasses, hooks)):
        return [each.name for each in fields(cls)]
    return []
