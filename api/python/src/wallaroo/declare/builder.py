"""Declares an application with the API of Wallaroo 0.1 to 0.5."""

from collections.abc import Sequence
from typing import Any

from wallaroo.check import check, object_state
from wallaroo.component import component
from wallaroo.component.application import CREATE, DEAD_LETTER, Application, Pipeline, RemoteComponent, State
from wallaroo.component.interface import Decoding, Encoding, PartitionOf, S, StateGiven, Stateless, StateOf
from wallaroo.component.wrapped import BaseWrapped
from wallaroo.connector import SINK_PORT, SOURCE_PORT, SinkConnectorConfig, SourceConnectorConfig
from wallaroo.declare.declaration import Declaration
from wallaroo.declare.library import declare_codecs
from wallaroo.diagnostic.diagnostic import Diagnostic, did_you_mean, shown
from wallaroo.diagnostic.error import Place, WallarooParameterError
from wallaroo.diagnostic.location import called_from
from wallaroo.endpoint.config import SinkConfig, SourceConfig


class ApplicationBuilder:
    """Declares an application, pipeline by pipeline. Every method returns the builder.

    Faults are collected; `build` raises them all at once.

    Args:
        name: Name of the application.
        on_error: Policy for user code that fails on a message: "dead_letter" puts the message aside, "fail" stops the
            query. A policy of a source, step or sink has precedence. `run --on-error` replaces the application's.

    Example:
        >>> import wallaroo
        >>> @wallaroo.decoder(header_length=4, length_fmt=">I")
        ... def decode(bs):
        ...     return bs.decode()
        >>> @wallaroo.encoder
        ... def encode(data):
        ...     return data
        >>> ab = wallaroo.ApplicationBuilder("Echo")
        >>> ab = ab.new_pipeline("Echo", wallaroo.TCPSourceConfig("127.0.0.1", "7010", decode))
        >>> ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode)).build().name
        'Echo'

    Source: Wallaroo 0.1 to 0.5.
    """

    def __init__(self, name: str, *, on_error: str | None = None) -> None:
        self._declaration = Declaration()
        self._findings: list[Diagnostic] = self._declaration.findings
        self._pipelines: list[Pipeline] = []
        self._open: Pipeline | None = None
        self._branch = ""  # path of the output with which the open pipeline begins, if it is a branch
        self._previous = "ApplicationBuilder"
        self._name = check.name(self._place("ApplicationBuilder", "/name"), "application", name)
        self._on_error = check.policy(self._place("ApplicationBuilder", "/on_error"), on_error)

    def __repr__(self) -> str:
        return f"ApplicationBuilder({self._name!r})"

    def new_pipeline(self, name: str, source_config: SourceConfig | str) -> "ApplicationBuilder":
        """Begin a pipeline with its source.

        Args:
            name: Name of the pipeline, unique in the application.
            source_config: The source, or the name of a connector.
        """
        self._close()
        number = len(self._pipelines)
        place = self._place("new_pipeline", f"/pipelines/{number}")
        name = check.name(place, "pipeline", name)
        self._open = Pipeline(name, number, place.location)
        self._pipelines.append(self._open)
        self._previous = "new_pipeline"
        place.pointer += "/sources/0"
        config = self._declaration.connector(place, source_config, SourceConnectorConfig)
        if config is not None:
            self._declaration.source(self._open, place, config, name)
        return self

    def from_output(self, step: str, name: str) -> "ApplicationBuilder":
        """Continue with the messages for a named output of a computation whose pipeline has already ended.

        If nothing continues from an output, its messages are counted and dropped.

        Args:
            step: Name of the computation. If several computations have this name, the latest one counts.
            name: Name of an output that the computation declares, e.g. with `outputs=("alerts",)`.
        """
        self._close()
        place = self._place("from_output", f"/pipelines/{max(0, len(self._pipelines) - 1)}")
        steps = [(line, each) for line in self._pipelines for each in line.steps if each.name == step]
        known = [each for _, each in steps if each.kind != "output"]
        declared = known[-1].outputs if known else ()
        if not known or name not in declared:
            what = f'step "{step}"' if known else f"{shown(step)}, which is no step before it,"
            hint = did_you_mean(name, declared) if isinstance(name, str) else ""
            declare = f"outputs=({shown(name)},) with the computation"
            place.add("T273", step=what, output=shown(name), hint=hint, declare=declare)
            return self
        self._open = next(line for line, each in steps if each is known[-1])
        base = int(known[-1].path.rpartition("/")[2])
        self._branch = f"{self._open.number}/steps/{base + 1 + declared.index(name)}"
        self._previous = "from_output"
        return self

    def to(self, computation: Stateless, *, on_error: str | None = None) -> "ApplicationBuilder":
        """Send each message to a computation.

        An object that keeps data between messages, e.g. in a list, is one object for the whole application, as in
        Wallaroo 0.1. It sees all messages in arrival order, and is saved like a state. Other objects run in parallel.

        Args:
            computation: A function with `@computation` or `@computation_multi`, or a class or object with `name()` and
                `compute(data)` or `compute_multi(data)`.
            on_error: Policy if it fails on a message, "dead_letter" or "fail"; None takes the application's policy.
        """
        return self._to("to", computation, on_error)

    def to_parallel(self, computation: Stateless, *, on_error: str | None = None) -> "ApplicationBuilder":
        """Send each message to a computation that runs in parallel. Each worker process has a copy of its object.

        Args:
            computation: As for `to`.
            on_error: As for `to`.
        """
        return self._to("to_parallel", computation, on_error)

    def to_stateful(
        self,
        computation: StateGiven[S],
        state_class: StateOf[S] | None = None,
        state_name: str = "",
        *,
        state_builder: StateOf[S] | None = None,
        on_error: str | None = None,
    ) -> "ApplicationBuilder":
        """Send each message to a state computation with one state for all messages.

        Args:
            computation: Takes `(message, state)`, returns `(output or None, persist)`.
            state_class: Class (or object with `build()`) that makes the state.
            state_name: Name of the state; steps with the same name share the state.
            state_builder: Another name of `state_class` (Wallaroo 0.1).
            on_error: As for `to`.
        """
        builder = state_class if state_builder is None else state_builder
        return self._to_state("to_stateful", computation, builder, state_name, None, on_error)

    def to_state_partition(
        self,
        computation: StateGiven[S],
        state_class: StateOf[S] | None = None,
        state_name: str = "",
        partition_function: PartitionOf | None = None,
        partition_keys: Sequence[Any] = (),
        *,
        unknown_keys: str | None = None,
        state_builder: StateOf[S] | None = None,
        on_error: str | None = None,
    ) -> "ApplicationBuilder":
        """Send each message to a state computation that has one state per key.

        `partition_function` runs once per message and again after a restart, so it must depend on the message
        alone. Messages with one key are processed in arrival order; different keys run in parallel.

        Args:
            computation: Takes `(message, state)`, returns `(output or None, persist)`.
            state_class: Class (or object with `build()`) that makes the state of one key.
            state_name: Name of the state; steps with the same name share the state.
            partition_function: Returns the key of a message: `str`, `bytes` or `int`.
            partition_keys: Keys whose states are created at once; may be empty.
            unknown_keys: Policy for keys that are not in `partition_keys`: "create" makes a state, "dead_letter" puts
                the message aside. Default: "dead_letter" for class-based computations with keys, else "create".
            state_builder: Another name of `state_class` (Wallaroo 0.1).
            on_error: As for `to`.
        """
        builder = state_class if state_builder is None else state_builder
        rule = (partition_function, partition_keys, unknown_keys)
        return self._to_state("to_state_partition", computation, builder, state_name, rule, on_error)

    def to_state_partition_u64(
        self,
        computation: StateGiven[S],
        state_class: StateOf[S] | None = None,
        state_name: str = "",
        partition_function: PartitionOf | None = None,
        partition_keys: Sequence[int] = (),
        *,
        unknown_keys: str | None = None,
        state_builder: StateOf[S] | None = None,
        on_error: str | None = None,
    ) -> "ApplicationBuilder":
        """Add a step like `to_state_partition`, for programs of Wallaroo 0.1 to 0.4. Keys are 0 to 2**64-1."""
        builder = state_class if state_builder is None else state_builder
        rule = (partition_function, partition_keys, unknown_keys)
        return self._to_state("to_state_partition_u64", computation, builder, state_name, rule, on_error)

    def source_connector(
        self, name: str, encoder: Encoding, decoder: Decoding, port: str | int | None = None
    ) -> "ApplicationBuilder":
        """Declare a connector that brings messages. Pass its name to `new_pipeline`.

        Args:
            name: Name of the connector.
            encoder: Used by the connector to send a message, e.g. from `wallaroo.experimental.stream_message_encoder`.
            decoder: Used by the application to read the message.
            port: Port at which the application listens; by default 7100 for the first connector, 7101 for the next.

        Source: Wallaroo 0.5.3.
        """
        return self._add_connector("source_connector", SourceConnectorConfig, SOURCE_PORT, name, encoder, decoder, port)

    def sink_connector(
        self, name: str, encoder: Encoding, decoder: Decoding, port: str | int | None = None
    ) -> "ApplicationBuilder":
        """Declare a connector that takes output. Pass its name to `to_sink`.

        Args:
            name: Name of the connector.
            encoder: Used by the application to send a message.
            decoder: Used by the connector to read the message.
            port: Port at which the connector listens; by default 7200 for the first connector, 7201 for the next.

        Source: Wallaroo 0.5.3.
        """
        return self._add_connector("sink_connector", SinkConnectorConfig, SINK_PORT, name, encoder, decoder, port)

    def to_sink(self, sink_config: SinkConfig | str) -> "ApplicationBuilder":
        """Send the messages to a sink. This ends the pipeline.

        Args:
            sink_config: The sink, or the name of a connector.
        """
        return self._to_sinks("to_sink", [sink_config])

    def to_sinks(self, sink_configs: Sequence[SinkConfig | str]) -> "ApplicationBuilder":
        """Send every message to each of several sinks. This ends the pipeline.

        Args:
            sink_configs: The sinks or names of connectors, at least one.
        """
        is_list = isinstance(sink_configs, (list, tuple)) and bool(sink_configs)
        return self._to_sinks("to_sinks", sink_configs if is_list else [sink_configs])

    def done(self) -> "ApplicationBuilder":
        """End the pipeline without a sink. The output of its last step is dropped."""
        if self._begin("done", "") is not None:
            self._open = None
        return self

    def build(self) -> Application:
        """Return the application.

        Raises:
            WallarooParameterError: The declaration has faults; the error lists all of them.
        """
        self._close()
        check.settle_times(self._pipelines)
        findings = self._findings + declare_codecs(self._pipelines)
        if findings:
            raise WallarooParameterError(findings)
        user = self._declaration
        return Application(
            self._name, self._pipelines, user.components, on_error=self._on_error, connectors=user.connectors
        )

    def _place(self, method: str, pointer: str) -> Place:
        return Place(method, pointer, called_from(), self._findings)

    def _add_connector(
        self, method: str, cls: type, first_port: int, name: Any, encoder: Any, decoder: Any, port: Any
    ) -> "ApplicationBuilder":
        place = self._place(method, f"/pipelines/{len(self._pipelines)}")
        name = check.name(place, "connector", name)
        connectors = self._declaration.connectors
        if name in connectors:
            place.wrong("name", shown(name), "a name of its own for each connector")
        if port is None:
            port = first_port + sum(isinstance(each, cls) for each in connectors.values())
        connectors[name] = cls(name, encoder, decoder, port)
        return self

    def _begin(self, method: str, part: str) -> tuple[Pipeline, Place] | None:
        """Return the open pipeline, and the place of its next part. If none is open, add T212 and return None."""
        pipeline, previous = self._open, self._previous
        self._previous = method
        if pipeline is None:
            reason = "no pipeline is open" if previous == "ApplicationBuilder" else "the pipeline has ended"
            pointer = f"/pipelines/{max(0, len(self._pipelines) - 1)}"
            self._place(method, pointer).add(
                "T212", method=method, previous=previous, reason=reason, fix="begin a pipeline with new_pipeline first"
            )
            return None
        number = {"steps": len(pipeline.steps), "sinks": len(pipeline.sinks)}.get(part, 0)
        return pipeline, self._place(method, f"/pipelines/{pipeline.number}" + (f"/{part}/{number}" if part else ""))

    def _close(self) -> None:
        if self._open is not None:
            pointer = f"/pipelines/{self._open.number}"
            self._findings.append(check.open_end(pointer, self._open.location, self._open.name, self._open.last))
            self._open = None

    def _to(self, method: str, value: Any, on_error: str | None) -> "ApplicationBuilder":
        begun = self._begin(method, "steps")
        if begun is not None:
            pipeline, place = begun
            if isinstance(value, RemoteComponent) and not value.kind.startswith("state"):
                policy = check.policy(place, on_error)
                self._declaration.remote(pipeline, place, value, self._inputs(pipeline), None, policy)
                return self
            call = component.computation(place, value, has_state=False)
            state = self._object_state(place, value, call) if call is not None and method == "to" else None
            self._add_step(pipeline, place, value, call, state, on_error)
        return self

    def _object_state(self, place: Place, value: Any, call: component.ComponentMethods) -> State | None:
        """If the object of a computation keeps data, make it a state, and change `call` to use it; else return None.

        The object itself is the state, as in Wallaroo 0.1 (`wallaroo.check.object_state`).
        """
        owner = getattr(call.run, "__self__", None)
        if isinstance(value, BaseWrapped) or owner is None:
            return None
        kept = object_state.kept_by(owner)
        if not kept.where:
            return None
        if not kept.is_inside:
            place.add("T234", step=call.name, what="object", where=kept.where, reason="cannot be saved with it")
        taken = {step.state.name for line in self._pipelines for step in line.steps if step.state is not None}
        call.run, call.kind = object_state.ObjectStep(call.run.__name__, kept.where), f"state_{call.kind}"
        build = object_state.state_builder(owner, value)
        return State(object_state.free_name(call.name, taken), value, build)

    def _to_state(
        self,
        method: str,
        value: Any,
        builder: Any,
        state_name: Any,
        rule: tuple[Any, Any, Any] | None,
        on_error: str | None,
    ) -> "ApplicationBuilder":
        begun = self._begin(method, "steps")
        if begun is None:
            return self
        pipeline, place = begun
        call = component.computation(place, value, has_state=True)
        name = check.name(place, "state", state_name)
        build = self._declaration.state_build(place, builder)
        partition = None if rule is None else self._declaration.partition(place, name, rule[0])
        keys: tuple[Any, ...] = () if rule is None else check.keys(place, name, rule[1])
        if rule is None:
            unknown = CREATE
        else:
            is_closed = bool(keys) and not isinstance(value, BaseWrapped)
            unknown = (DEAD_LETTER if is_closed else CREATE) if rule[2] is None else rule[2]
        if unknown not in (CREATE, DEAD_LETTER):
            place.wrong("unknown_keys", shown(unknown), '"create" or "dead_letter"')
        if build is None or (rule is not None and partition is None):
            call = None
        state = State(name, builder, build, partition, keys, unknown) if build is not None else None
        self._add_step(pipeline, place, value, call, state, on_error)
        if call is not None and rule is not None:
            self._declaration.note(pipeline.steps[-1].path + "/partition", rule[0])
        if call is not None:
            self._declaration.note(pipeline.steps[-1].path + "/state", builder)
        return self

    def _add_step(
        self,
        pipeline: Pipeline,
        place: Place,
        value: Any,
        call: component.ComponentMethods | None,
        state: State | None,
        on_error: str | None,
    ) -> None:
        policy = check.policy(place, on_error)
        if call is not None:
            self._declaration.step(pipeline, place, value, call, self._inputs(pipeline), state, policy)

    def _to_sinks(self, method: str, configs: Sequence[Any]) -> "ApplicationBuilder":
        begun = self._begin(method, "sinks")
        if begun is None:
            return self
        pipeline, place = begun
        inputs = self._inputs(pipeline)
        for config in configs:
            place.pointer = f"/pipelines/{pipeline.number}/sinks/{len(pipeline.sinks)}"
            if (sink := self._declaration.connector(place, config, SinkConnectorConfig)) is not None:
                self._declaration.sink(pipeline, place, sink, pipeline.name, inputs)
        self._open = None
        return self

    def _inputs(self, pipeline: Pipeline) -> tuple[str, ...]:
        """Return the paths of the next part's inputs: the part before, or for a branch the output where it begins."""
        branch, self._branch = self._branch, ""
        last: list[Any] = [*pipeline.sources, *(step for step in pipeline.steps if step.kind != "output")]
        return (branch or (last[-1].path if last else f"{pipeline.number}/sources/0"),)
