"""Sources whose messages are made by user code."""

from typing import Any

from wallaroo.component import component
from wallaroo.component.application import Generator, Source
from wallaroo.diagnostic.error import Place
from wallaroo.endpoint.config import SourceConfig


class GenSourceConfig(SourceConfig):
    """A source whose messages come from a generator, which makes each message from the previous one.

    Positional arguments are `(gen)` or `(name, gen)`. All messages are saved, and after a restart the generator
    continues from the last message. So the result of `apply` must depend on its argument alone.

    Args:
        name: Name of the source; None takes the pipeline's name.
        gen: Object (or class) with `initial_value()` and `apply(previous)`. A result of None ends the messages.
        on_error: Policy if the generator fails, as for `ApplicationBuilder`; None takes the application's policy.

    Example:
        >>> class Numbers:
        ...     def initial_value(self):
        ...         return 1
        ...
        ...     def apply(self, previous):
        ...         return previous + 1 if previous < 10 else None
        >>> GenSourceConfig("numbers", Numbers()).name
        'numbers'

    Source: Wallaroo 0.5.4 and 0.6.1.
    """

    parameter, expected = "gen", "a generator"

    def __init__(self, *args: Any, gen: Any = None, name: str | None = None, on_error: str | None = None) -> None:
        positional = list(args)
        if len(positional) + (gen is not None) + (name is not None) > 2 or not positional and gen is None:
            msg = "GenSourceConfig takes a generator, or a name and a generator"
            raise TypeError(msg)
        self.gen = positional.pop() if gen is None else gen
        super().__init__(positional[0] if positional else name, on_error)

    @property
    def given(self) -> Any:
        """The user's generator, as the program passed it."""
        return self.gen

    def declare(self, place: Place, path: str, name: str, generator: Any) -> Source | None:
        """Return the declared source, or report an error at `place` and return None."""
        first = component.method(place, "generator", generator, ("initial_value",), ())
        following = component.method(place, "generator", generator, ("apply",), ("previous",))
        if first is None or following is None:
            return None
        return Source(path, name, "generator", {}, None, generator=Generator(first, following))
