"""The parts of a declaration that all Wallaroo APIs share: sources, steps and sinks, findings and user code."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from wallaroo.check import check
from wallaroo.check.state_check import check_state
from wallaroo.component import component
from wallaroo.component.application import Component, Pipeline, RemoteComponent, Source, State, Step
from wallaroo.component.signature import call_finding, partition_finding, shown_name
from wallaroo.component.wrapped import BaseWrapped
from wallaroo.connector import SinkConnectorConfig, SourceConnectorConfig, hint_of
from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.error import Place
from wallaroo.diagnostic.location import Location, declared_at
from wallaroo.endpoint.config import SinkConfig, SourceConfig
from wallaroo.message.kafka_record import WholeRecord
from wallaroo.message.output import collected


@dataclass(slots=True)
class Declaration:
    """An application that is being declared: its findings, its connectors, and the user's code of its parts."""

    findings: list[Diagnostic] = field(default_factory=list)
    components: list[Component] = field(default_factory=list)
    connectors: dict[str, Any] = field(default_factory=dict)

    def note(self, path: str, value: object, location: Location | None = None) -> None:
        """Record a part's function or class, and its place in the program, for the topology document.

        A `WholeRecord`, which belongs to the SDK, gets the place `location`.
        """
        target = value if isinstance(value, (type, BaseWrapped)) else type(value)
        at = location if location is not None and isinstance(value, WholeRecord) else declared_at(value)
        self.components.append(Component(path, shown_name(target), Location(*at)))

    def source(self, pipeline: Pipeline, place: Place, config: Any, name: str) -> None:
        """Add a source. Its name is the config's name, or `name` if the config has no name."""
        if not isinstance(config, SourceConfig):
            place.wrong("source_config", shown(config), "a source config, e.g. TCPSourceConfig")
            return
        decoder = component.instance(place, config.parameter, config.given, config.decorator, config.expected)
        if decoder is None:
            return
        path = f"{pipeline.number}/sources/{len(pipeline.sources)}"
        name = name if config.name is None else check.name(place, "source", config.name)
        if isinstance(config, SourceConnectorConfig):
            self.connectors[name] = config
        source = _with_event_time(place, config.declare(place, path, name, decoder), decoder)
        if source is not None:
            policy = check.policy(replace(place, method=type(config).__name__), config.on_error)
            pipeline.sources.append(replace(source, on_error=policy))
            self.note(path, decoder, config.location)

    def sink(self, pipeline: Pipeline, place: Place, config: Any, name: str, inputs: tuple[str, ...]) -> None:
        """Add a sink. Its name is the config's name, or `name` if the config has no name."""
        if not isinstance(config, SinkConfig):
            is_list = place.method == "to_sinks"
            parameter, expected = ("sink_configs", "sink configs, e.g. [TCPSinkConfig(...)]") if is_list else (
                "sink_config", "a sink config, e.g. TCPSinkConfig"
            )  # fmt: skip
            place.wrong(parameter, shown(config), expected)
            return
        encoder = component.instance(place, "encoder", config.encoder, config.decorator, "an encoder")
        if encoder is None:
            return
        if config.name is not None:
            name = check.name(place, "sink", config.name)
            if isinstance(config, SinkConnectorConfig):
                self.connectors[name] = config
        path = f"{pipeline.number}/sinks/{len(pipeline.sinks)}"
        sink = config.declare(place, path, name, inputs, encoder)
        if sink is not None:
            policy = check.policy(replace(place, method=type(config).__name__), config.on_error)
            pipeline.sinks.append(replace(sink, on_error=policy))
            self.note(path, encoder, config.location)

    def step(
        self,
        pipeline: Pipeline,
        place: Place,
        value: Any,
        call: component.ComponentMethods,
        inputs: tuple[str, ...],
        state: State | None,
        on_error: str,
    ) -> Step:
        """Add a step that runs a computation of this program."""
        path = f"{pipeline.number}/steps/{len(pipeline.steps)}"
        name = check.name(place, "computation", call.name)
        if state is not None:
            check_state(place, call, state)
        step = Step(path, name, call.kind, inputs, collected(call.run), place.location, state, on_error)
        pipeline.steps.append(step)
        self.note(path, value)
        if state is not None:
            state.ttl_ms = call.ttl_ms
        step.visits, step.visit = call.visits, None if call.visit is None else collected(call.visit)
        step.timers, step.fire, step.takes_timers = call.timers, call.fire, call.takes_timers
        for what, names in (("visit", call.visits), ("timer", call.timers)):
            self._unique(place, what, names)
        self._outputs(pipeline, place, step, call.outputs)
        return step

    @staticmethod
    def _unique(place: Place, what: str, names: tuple[str, ...]) -> None:
        for number, name in enumerate(names):
            check.name(place, what, name)
            if name in names[:number]:
                place.wrong(f"{what}s", shown(names), "each name once")

    def remote(
        self, pipeline: Pipeline, place: Place, component: RemoteComponent,
        inputs: tuple[str, ...], state: State | None,
        on_error: str,
    ) -> Step:  # fmt: skip
        """Add a step that another program runs."""
        path = f"{pipeline.number}/steps/{len(pipeline.steps)}"
        step = Step(path, component.name, component.kind, inputs, None, place.location, state, on_error)
        step.remote, step.codec = component, component.output
        pipeline.steps.append(step)
        self._outputs(pipeline, place, step, tuple(component.outputs))
        return step

    def _outputs(self, pipeline: Pipeline, place: Place, step: Step, names: tuple[str, ...]) -> None:
        """Add a step for each named output of a computation, directly after the computation's step."""
        step.outputs = names
        self._unique(place, "output", names)
        for name in names:
            path = f"{pipeline.number}/steps/{len(pipeline.steps)}"
            output = Step(path, name, "output", (step.path,), None, place.location, remote=step.remote)
            output.codec = step.remote.outputs[name] if step.remote else output.codec
            pipeline.steps.append(output)

    def connector(self, place: Place, config: Any, cls: type) -> Any:
        """Return the config of the connector named `config`, or add T233 and return None. Return a config unchanged."""
        if not isinstance(config, str):
            return config
        of_kind = {name: each for name, each in self.connectors.items() if isinstance(each, cls)}
        if config not in of_kind:
            place.add("T233", name=config, hint=hint_of(of_kind))
        return of_kind.get(config)

    def partition(self, place: Place, state: str, function: Any) -> Callable[[Any], Any] | None:
        """Return the function from a message to its key, or report an error at `place` and return None."""
        partition = component.instance(place, "partition_function", function, "partition", "a partition function")
        if partition is None:
            return None
        run = component.method(place, "partition", partition, ("partition",), ("data",))
        finding = None if run is None else partition_finding(state, run, partition)
        if finding is not None:
            place.take(finding)
        return run

    def state_build(self, place: Place, builder: Any) -> Callable[[], Any] | None:
        """Return the function that makes a new state, or report an error at `place` and return None."""
        if isinstance(builder, type):
            finding = call_finding("state class", shown_name(builder), builder, ())
            if finding is not None:
                place.take(finding)
            return builder
        if callable(getattr(builder, "build", None)):
            return component.method(place, "state class", builder, ("build",), ())
        place.wrong("state_class", shown(builder), "a class, or an object with build()")
        return None


def _with_event_time(place: Place, source: Source | None, decoder: object) -> Source | None:
    """Return the source. If the decoder has a method `event_time`, messages get their times from it."""
    times = getattr(decoder, "event_time", None)
    if source is None or source.kind == "generator" or not callable(times):
        return source
    if component.method(place, "event_time", decoder, ("event_time",), ("bs",)) is None:
        return source
    return replace(source, event_time=times, gives_time=True)
