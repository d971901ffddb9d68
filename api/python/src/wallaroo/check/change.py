"""Finds the objects that user code changes, from the assignments and calls in its source."""

import ast
import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSequence, MutableSet
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

from wallaroo.check.source_tree import source_tree
from wallaroo.component.signature import target_of

# How user code keeps values after a call: it binds a variable to them, or fills a container, which it may also read.
Outside = Literal["bound", "filled", "read"]
CONTAINERS = (MutableMapping, MutableSequence, MutableSet)
_CHANGES = frozenset((
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "insert",
    "intersection_update", "pop", "popitem", "popleft", "remove", "reverse", "setdefault", "sort", "update",
))  # fmt: skip
_GIVING = frozenset(("pop", "popitem", "popleft", "setdefault"))
# Functions of the standard library that change their first argument. The user's functions are not analyzed.
_FILLERS = frozenset((
    "heapify", "heappop", "heappush", "heappushpop", "heapreplace", "insort", "insort_left", "insort_right", "shuffle",
))  # fmt: skip
_NODES = (ast.Name, ast.Attribute, ast.Subscript)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A place in the source that assigns a new value to a target, or changes the content of the target's object.

    Attributes:
        target: Expression that is bound or filled.
        value: Expression that is assigned; None if the source does not show the value.
        statement: Statement or call that makes the change.
    """

    target: ast.expr
    value: ast.expr | None
    statement: ast.AST

    @property
    def is_content(self) -> bool:
        """Whether the content of the target's object changes. If not, a new value is assigned to the target."""
        return isinstance(self.statement, ast.Call) and not isinstance(self.statement.func, ast.Name)

    def gives(self, nodes: Iterable[ast.AST]) -> bool:
        """Return whether the change is a call such as `d.pop(k)` whose result the code `nodes` uses."""
        method = getattr(getattr(self.statement, "func", None), "attr", "")
        alone = (isinstance(node, ast.Expr) and node.value is self.statement for node in nodes)
        return self.is_content and method in _GIVING and not any(alone)

    def chain(self) -> tuple[ast.expr, list[str]]:
        """Return root and attributes of the target, e.g. `self` and `["a", "b"]` for `self.a[0].b`."""
        root, names = self.target, list[str]()
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            names += [root.attr] if isinstance(root, ast.Attribute) else []
            root = root.value
        return root, names[::-1]

    @property
    def changed(self) -> list[str]:
        """The attributes whose objects change: `a` for `self.a.b = 1`, but `a` and `b` for `self.a.b.pop()`."""
        is_bound = isinstance(self.target, ast.Attribute) and not self.is_content
        return self.chain()[1][: -1 if is_bound and not isinstance(self.statement, ast.AugAssign) else None]


def changes(tree: ast.AST) -> Iterator[SourceChange]:
    """Yield all places in `tree` that assign a value or change an object, e.g. by `setattr` with a literal name."""
    known: dict[int, tuple[ast.expr | None, ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                known |= {id(part): (value, node) for part, value in _paired(target, node.value)}
        elif isinstance(node, ast.AugAssign):
            known[id(node.target)] = None, node
        if isinstance(node, _NODES) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield SourceChange(node, *known.get(id(node), (None, node)))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
            yield SourceChange(node.func.value, None, node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr") and len(node.args) > 1:
            owner, name = node.args[:2]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield SourceChange(ast.Attribute(owner, name.value, ast.Store()), None, node)


def changed_attributes(functions: Iterable[Callable[..., Any]], *, of_first: bool = False) -> set[str]:
    """Return the attributes whose objects `functions` change, also by an alias of the object or by e.g. `heappush`.

    Args:
        functions: Functions of the user.
        of_first: Whether only attributes of the first parameter count.
    """
    names = set[str]()
    for scope in (scope for function in functions for scope in scopes(function)):
        own = scope.args.args[0].arg if scope.args.args else ""
        aliases: dict[str, str] = {}
        nodes = list(ast.walk(scope))
        for node in nodes:
            parts = getattr(node, "args", []) if isinstance(node, ast.Call) else [getattr(node, "value", None)]
            whole = [
                each for each in parts
                if isinstance(each, ast.Attribute) and (not of_first or ast.unparse(each.value) == own)
            ]  # fmt: skip
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _FILLERS:
                names |= {each.attr for each in whole}
            elif isinstance(node, (ast.Assign, ast.NamedExpr)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                aliases |= {each.id: part.attr for each in targets for part in whole if isinstance(each, ast.Name)}
        for change in changes(scope):
            root, _ = change.chain()
            name = root.id if isinstance(root, ast.Name) else ""
            names.update(change.changed if name == own or not of_first else ())
            if name in aliases and (root is not change.target or change.is_content):
                names.add(aliases[name])
    return names


def functions_of(cls: type) -> Iterator[tuple[Callable[..., Any], bool]]:
    """Yield the functions of a class, and whether each of them is a class method."""
    for value in vars(cls).values():
        parts = (value, getattr(value, "__func__", None), *(getattr(value, of, None) for of in ("fget", "fset")))
        yield from ((part, isinstance(value, classmethod)) for part in parts if inspect.isfunction(part))


def slots_of(cls: type) -> tuple[str, ...]:
    """Return the names of the attributes that a class declares in `__slots__`."""
    slots = vars(cls).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else slots
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def scopes(function: Callable[..., Any]) -> list[Any]:
    """Return the syntax tree of a function in a list; an empty list if its source is not known.

    For a lambda the list has all lambdas of its statement, because the source does not show which of them it is.
    """
    try:
        waiting: list[ast.AST] = [source_tree(inspect.unwrap(target_of(function)))]
    except (OSError, TypeError, SyntaxError):
        return []  # e.g. of a class made at run time
    functions = list[ast.AST]()
    while waiting:
        node = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            functions.append(node)
        else:
            waiting += ast.iter_child_nodes(node)
    return functions


def outside(function: Callable[..., Any], own: type, *, gets_class: bool = False) -> Iterator[tuple[str, Outside]]:
    """Yield each variable outside of a function in which the function keeps values, and how (see `Outside`).

    Args:
        function: Function of the user.
        own: Class of the object that the function gets.
        gets_class: Whether the first parameter of the function is this class.
    """
    function = inspect.unwrap(target_of(function))
    free_names = set(getattr(getattr(function, "__code__", None), "co_freevars", ()))
    defaults = _defaults(function)
    names = variables(function) | defaults
    for scope in scopes(function):
        changed, nodes = list(changes(scope)), list(ast.walk(scope))
        declared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        outer = {name for node in nodes if isinstance(node, ast.Nonlocal) for name in node.names} & free_names
        local = {each.arg for each in nodes if isinstance(each, ast.arg)} - {*defaults}
        local |= {each.target.id for each in changed if isinstance(each.target, ast.Name) and not each.is_content}
        loaded = [each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]
        first = scope.args.args[0].arg if gets_class and scope.args.args else None
        for change in changed:
            root, path = change.chain()
            text, name = ast.unparse(change.target), root.id if isinstance(root, ast.Name) else None
            if root is change.target and name in declared | outer:
                yield f"{'global' if name in declared else 'nonlocal'} {name}", "bound"
                continue
            value = names.get(name) if name and name not in local - declared - outer else None
            if text.startswith("type(") or path[:1] == ["__class__"] or (first and name == first):
                value, path = own, path[path[:1] == ["__class__"] :]
            while isinstance(value, ModuleType) and path:
                value = getattr(value, path.pop(0), None)
            if isinstance(value, type):
                yield from ((text, "bound") for each in path[:1] if not is_class_var(value, each))
            elif value is not None and name and (isinstance(value, CONTAINERS) or path or not change.is_content):
                is_read = loaded.count(name) > sum(_root(each) == name for each in changed) or change.gives(nodes)
                yield name, "read" if is_read else "filled"


def is_class_var(cls: type, name: str) -> bool:
    """Return whether a class annotates an attribute with ClassVar, so that its value may differ between processes."""
    return any("ClassVar" in str(vars(each).get("__annotations__", {}).get(name)) for each in cls.__mro__)


def _root(change: SourceChange) -> str:
    root, _ = change.chain()
    return root.id if isinstance(root, ast.Name) else ""


def variables(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the variables that a function can see in its module and in the enclosing functions."""
    values = dict(getattr(function, "__globals__", {}))
    code = getattr(function, "__code__", None)
    for name, cell in zip(code.co_freevars if code else (), getattr(function, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # not assigned yet
            values[name] = cell.cell_contents
    return values


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters whose default value is a container, which all calls of a process share."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {each.name: each.default for each in parameters if isinstance(each.default, CONTAINERS)}


def _paired(target: ast.expr, value: ast.expr | None) -> list[tuple[ast.expr, ast.expr | None]]:
    """Split an assignment like `a, b = 1, 2` into pairs of target and value. A value that is not known is None."""
    parts: list[ast.expr] | None = getattr(target, "elts", None)
    if parts is None:
        return [(target, value)]
    values = getattr(value, "elts", [])
    return list(zip(parts, values if len(values) == len(parts) else [None] * len(parts), strict=True))
