"""Declares an application as a pipeline of sources, steps and sinks, as Wallaroo 0.6 did."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from wallaroo.component.interface import KeyOf, S, Stateful, Stateless
from wallaroo.diagnostic.location import Location, called_from
from wallaroo.endpoint.config import SinkConfig, SourceConfig

_numbers = count()


@dataclass(frozen=True, slots=True, eq=False)
class PipelineNode:
    """A call that adds a source, a step or a sink. Its arguments are checked when the application is built.

    Attributes:
        number: Grows with each call of the program.
        method: Name of the called method.
        part: `sources`, `steps` or `sinks`.
        value: Argument of the call; for a source the pair of name and config.
    """

    number: int
    method: str
    part: str
    value: Any
    on_error: str | None
    location: Location
    inputs: tuple["PipelineNode", ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """One call of `merge`, with the last nodes of both pipelines."""

    location: Location
    left: tuple[PipelineNode, ...]
    right: tuple[PipelineNode, ...]


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A call on a pipeline that has ended with a sink; `build_application` refuses it."""

    location: Location
    method: str
    previous: str


class Pipeline:
    """Sources, steps and sinks. It never changes: every method returns a new pipeline.

    Two pipelines may continue from the same pipeline. They share its steps, and both get its messages. Programs call
    `wallaroo.source` or `from_source`, not the constructor.

    Example:
        >>> import wallaroo
        >>> @wallaroo.decoder(header_length=4, length_fmt=">I")
        ... def decode(bs):
        ...     return bs.decode()
        >>> @wallaroo.computation("reverse")
        ... def reverse(data):
        ...     return data[::-1]
        >>> @wallaroo.encoder
        ... def encode(data):
        ...     return data
        >>> lines = Pipeline.from_source("lines", wallaroo.TCPSourceConfig("127.0.0.1", "7010", decode))
        >>> lines = lines.to(reverse).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode))
        >>> wallaroo.build_application("Reverse", lines).name
        'Reverse'

    Source: Wallaroo 0.6.
    """

    __slots__ = ("_ends", "_merges", "_misplaced")

    def __init__(
        self, ends: tuple[PipelineNode, ...], merges: tuple[Merge, ...] = (), misplaced: tuple[Misplaced, ...] = ()
    ) -> None:
        self._ends, self._merges, self._misplaced = ends, merges, misplaced

    @classmethod
    def from_source(cls, name: str, source_config: SourceConfig) -> "Pipeline":
        """Begin a pipeline with a source, as `wallaroo.source` does."""
        return cls((PipelineNode(next(_numbers), "source", "sources", (name, source_config), None, called_from()),))

    def __repr__(self) -> str:
        return f"<Pipeline {' and '.join(end.method for end in self._ends)}>"

    @property
    def parts(self) -> tuple[tuple[PipelineNode, ...], tuple[Merge, ...], tuple[Misplaced, ...]]:
        """The last nodes, the calls of `merge`, and the calls after a sink, for `build_application`."""
        return self._ends, self._merges, self._misplaced

    def clone(self) -> "Pipeline":
        """Return a pipeline that is equal to this one."""
        return Pipeline(self._ends, self._merges, self._misplaced)

    def to(self, computation: Stateless | Stateful[S], *, on_error: str | None = None) -> "Pipeline":
        """Send each message to a computation, a state computation or windows.

        State computations and windows keep a state per key of messages. They need `key_by` or `collect` before them, or
        a source whose messages have keys.

        Args:
            computation: A function with `@computation(name)`, `@computation_multi(name)`, or `@state_computation(name,
                state=StateClass)` or `@state_computation_multi`; or `range_windows(...).over(...)`,
                `session_windows(...).over(...)`, `count_windows(...).over(...)`.
            on_error: Policy if the computation fails on a message, "dead_letter" or "fail"; None takes the
                application's policy.
        """
        return self._then("to", computation, on_error)

    def output(self, name: str) -> "Pipeline":
        """Continue with the messages for a named output of the last step, a computation or windows.

        The pipeline itself continues with the other messages. If nothing continues from an output, its messages are
        counted and dropped.

        Args:
            name: Name of an output that the computation declares.
        """
        return self._then("output", name, None)

    def key_by(self, key_extractor: KeyOf, *, on_error: str | None = None) -> "Pipeline":
        """Set the key of each message to the result of a key extractor, until the next `key_by` or `collect`.

        Args:
            key_extractor: A function with `@key_extractor`.
            on_error: As for `to`.
        """
        return self._then("key_by", key_extractor, on_error)

    def collect(self) -> "Pipeline":
        """Give all messages the same key, so that each state computation and window downstream has one state."""
        return self._then("collect", None, None)

    def merge(self, pipeline: "Pipeline") -> "Pipeline":
        """Return a pipeline with the messages of both pipelines, in the order of their arrival.

        Args:
            pipeline: The other pipeline. Both pipelines must be without a sink.
        """
        at = called_from()
        if not isinstance(pipeline, Pipeline):
            return self._then("merge", pipeline, None)
        misplaced = self._misplaced + pipeline._misplaced
        for side in (self, pipeline):
            if side._end():
                misplaced += (Misplaced(at, "merge", side._end()),)
        ends = tuple(dict.fromkeys(self._ends + pipeline._ends))
        merges = tuple(dict.fromkeys(self._merges + pipeline._merges)) + (Merge(at, self._ends, pipeline._ends),)
        return Pipeline(ends, merges, tuple(dict.fromkeys(misplaced)))

    def to_sink(self, sink_config: SinkConfig) -> "Pipeline":
        """Send the messages to a sink. This ends the pipeline.

        Args:
            sink_config: The sink, e.g. a `TCPSinkConfig`.
        """
        return self._to_sinks("to_sink", [sink_config])

    def to_sinks(self, sink_configs: Sequence[SinkConfig]) -> "Pipeline":
        """Send every message to each of several sinks. This ends the pipeline.

        Args:
            sink_configs: The sinks, at least one.
        """
        is_list = isinstance(sink_configs, (list, tuple)) and bool(sink_configs)
        return self._to_sinks("to_sinks", sink_configs if is_list else [sink_configs])

    def _to_sinks(self, method: str, configs: Sequence[Any]) -> "Pipeline":
        at = called_from()
        ends = [PipelineNode(next(_numbers), method, "sinks", config, None, at, self._ends) for config in configs]
        return self._followed_by(method, at, tuple(ends))

    def _then(self, method: str, value: Any, on_error: str | None) -> "Pipeline":
        at = called_from()
        return self._followed_by(
            method, at, (PipelineNode(next(_numbers), method, "steps", value, on_error, at, self._ends),)
        )

    def _followed_by(self, method: str, at: Location, ends: tuple[PipelineNode, ...]) -> "Pipeline":
        if self._end():
            return Pipeline(self._ends, self._merges, (*self._misplaced, Misplaced(at, method, self._end())))
        return Pipeline(ends, self._merges, self._misplaced)

    def _end(self) -> str:
        """Return the method that ended the pipeline, `to_sink` or `to_sinks`, or an empty text if it is open."""
        return next((end.method for end in self._ends if end.part == "sinks"), "")


def joined(*pipelines: Pipeline) -> Pipeline:
    """Return one pipeline that contains several pipelines, which may share parts."""
    ends, merges, misplaced = (
        tuple(dict.fromkeys(each for pipeline in pipelines for each in pipeline.parts[at])) for at in range(3)
    )
    return Pipeline(ends, merges, misplaced)  # type: ignore[arg-type]


def source(name: str, source_config: SourceConfig) -> Pipeline:
    """Begin a pipeline with a source.

    Args:
        name: Name of the source, if its config has no name.
        source_config: The source, e.g. a `TCPSourceConfig`.

    Example:
        >>> import wallaroo
        >>> class Numbers:
        ...     def initial_value(self):
        ...         return 1
        ...
        ...     def apply(self, previous):
        ...         return previous + 1
        >>> @wallaroo.computation(name="double")
        ... def double(number):
        ...     return 2 * number
        >>> isinstance(source("numbers", wallaroo.GenSourceConfig(Numbers())).to(double), Pipeline)
        True

    Source: Wallaroo 0.6.
    """
    return Pipeline.from_source(name, source_config)
