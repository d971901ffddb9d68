"""Finds out whether the object of a stateless computation keeps data from one message to the next.

Wallaroo 0.1 ran a step of `to` as one object in the whole cluster: an object that counts messages saw all of them.
Here steps run in several processes. Such an object becomes the single state of a state computation: it is saved, and
sees all messages in order.
"""

import ast
import copy
import inspect
import pickle
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from wallaroo.check.change import changes, functions_of, is_class_var, outside, scopes
from wallaroo.check.check import MAX_NAME
from wallaroo.message.output import collected

_VALUES = (str, bytes, int, float, complex, bool, type(None), type, range)


@dataclass(frozen=True, slots=True)
class Kept:
    """The answer of `kept_by`: whether the object of a computation keeps data from one message to the next.

    Attributes:
        where: Name of an attribute or variable that keeps data, for messages; empty if the object keeps no data.
        is_inside: Whether the object contains all data that it keeps, and can be saved.
    """

    where: str = ""
    is_inside: bool = True


def kept_by(computation: Any) -> Kept:
    """Find out whether the object of a computation keeps data between messages, as far as its source shows this.

    Example:
        >>> class Scale:
        ...     def __init__(self):
        ...         self.factor = 2
        ...
        ...     def compute(self, data):
        ...         return data * self.factor
        >>> class Seen(Scale):
        ...     def __init__(self):
        ...         self.words = set()
        >>> kept_by(Scale()).where, kept_by(Seen()).where
        ('', 'self.words')
    """
    classes = [each for each in type(computation).__mro__ if each is not object]
    assigned = sorted((pair for cls in classes for pair in assignments(cls)), key=lambda pair: pair[1])
    if assigned:  # sorted so that data outside of the object comes first, since it decides
        where, is_inside = assigned[0]
        return Kept(where, is_inside and _is_saved(computation))
    for name, value in vars(computation).items() if hasattr(computation, "__dict__") else ():
        if not _is_constant(value):
            return Kept(f"self.{name}", _is_saved(computation))
    return Kept()


def state_builder(computation: Any, builder: Any) -> Callable[[], Any]:
    """Return the function that makes new states if the step's object is the state: the class, or a copying function."""
    return builder if isinstance(builder, type) else lambda: copy.deepcopy(computation)


def free_name(step: str, taken: Collection[str]) -> str:
    """Return an unused name for the state of a step whose object is the state.

    Example:
        >>> free_name("count", ["object of count"])
        'object of count 2'
    """
    name, number = f"object of {step}"[:MAX_NAME], 1
    while name in taken:
        number += 1
        name = f"object of {step}"[: MAX_NAME - 8] + f" {number}"
    return name


@dataclass(frozen=True, slots=True)
class ObjectStep:
    """A state computation whose state is the user's object. For each message, a method of the object is called.

    Attributes:
        where: Name of the attribute in which the object keeps data, for messages.
    """

    method: str
    where: str

    def __call__(self, data: Any, state: Any) -> tuple[Any, bool]:
        """Call the method with a message."""
        return collected(getattr(state, self.method))(data), True


def assignments(cls: type) -> Iterator[tuple[str, bool]]:
    """Yield the attributes and variables that methods of a class assign, each with True if it is in the object."""
    for function, gets_class in functions_of(cls):
        if function.__name__ == "__init__":
            continue
        changes = outside(function, cls, gets_class=gets_class)
        yield from ((where, False) for where, how in changes if how == "bound")
        if not gets_class:
            yield from ((where, True) for scope in scopes(function) for where in _assigned(scope, cls))


def _assigned(scope: Any, cls: type) -> Iterator[str]:
    """Yield the object's attributes that a method assigns, except attributes that the class annotates with ClassVar."""
    own = scope.args.args[0].arg if scope.args.args else ""
    for change in changes(scope):
        root, names = change.chain()
        is_own = root is not change.target and ast.unparse(root) == own
        is_shared = names[:1] == ["__class__"] or any(is_class_var(cls, name) for name in names[:1])
        if is_own and not change.is_content and not is_shared:
            yield ast.unparse(change.target)


def _is_constant(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_constant, value))
    return isinstance(value, _VALUES) or callable(value) or inspect.ismodule(value) or type(value).__name__ == "Pattern"


def _is_saved(computation: Any) -> bool:
    try:
        pickle.dumps(computation)
    except Exception:
        return False
    return True
