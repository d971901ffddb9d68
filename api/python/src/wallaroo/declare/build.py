"""Builds an application from pipelines of Wallaroo 0.6: checks them, and numbers the parts for the topology."""

from dataclasses import replace
from typing import Any

from wallaroo.check import check
from wallaroo.component import application as model
from wallaroo.component import component
from wallaroo.component.signature import shown_name, takes
from wallaroo.component.window import CountWindowsBuilder, TimedWindowsBuilder, Windows
from wallaroo.declare.declaration import Declaration
from wallaroo.declare.library import declare_codecs
from wallaroo.declare.pipeline import Merge, Pipeline, PipelineNode, joined
from wallaroo.diagnostic.diagnostic import did_you_mean, shown
from wallaroo.diagnostic.error import Place, WallarooParameterError
from wallaroo.diagnostic.location import called_from

PARTS = ("sources", "steps", "sinks")


def build_application(
    app_name: str, pipeline: Pipeline, *others: Pipeline, on_error: str | None = None
) -> model.Application:
    """Build the application of a pipeline.

    Args:
        app_name: Name of the application.
        pipeline: A pipeline that ends with `to_sink` or `to_sinks`.
        others: Further pipelines that share parts with `pipeline`, e.g. the branch from a named output to another sink.
        on_error: Policy for failing user code, as for `ApplicationBuilder`.

    Raises:
        WallarooParameterError: The declaration has faults; the error lists all of them.

    Example:
        >>> import wallaroo
        >>> class Numbers:
        ...     def initial_value(self):
        ...         return 1
        ...
        ...     def apply(self, previous):
        ...         return previous + 1
        >>> @wallaroo.encoder
        ... def encode(number):
        ...     return b"%d" % number
        >>> numbers = wallaroo.source("numbers", wallaroo.GenSourceConfig(Numbers()))
        >>> build_application("Count up", numbers.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode))).name
        'Count up'

    Source: Wallaroo 0.6.
    """
    build = _Build(app_name, on_error)
    wrong = next((each for each in (pipeline, *others) if not isinstance(each, Pipeline)), None)
    if wrong is None:
        build.run(joined(pipeline, *others))
    else:
        build.place("build_application", "/pipelines/0").wrong("pipeline", shown(wrong), "a Pipeline")
    if build.findings:
        raise WallarooParameterError(build.findings)
    connectors = build.connectors
    return model.Application(build.name, [build.line], build.components, on_error=build.on_error, connectors=connectors)


class _Build(Declaration):
    """One call of `build_application`: collects the parts of the application, and the findings about these parts."""

    def __init__(self, name: Any, on_error: str | None) -> None:
        super().__init__()
        place = self.place("build_application", "/name")
        self.name = check.name(place, "application", name)
        self.on_error = check.policy(replace(place, pointer="/on_error"), on_error)
        self.line = model.Pipeline(self.name, 0, place.location)
        self._paths: dict[PipelineNode, str] = {}
        self._times: dict[PipelineNode, bool] = {}
        self._states: set[str] = set()

    def place(self, method: str, pointer: str) -> Place:
        return Place(method, pointer, called_from(), self.findings)

    def run(self, pipeline: Pipeline) -> None:
        """Declare all parts of a pipeline."""
        ends, merges, misplaced = pipeline.parts
        for call in misplaced:
            Place(call.method, "/pipelines/0", call.location, self.findings).add(
                "T212", method=call.method, previous=call.previous, reason="the pipeline has ended",
                fix="put it before the sinks",
            )  # fmt: skip
        nodes = _reachable(ends)
        self._number(nodes)
        if not misplaced:  # otherwise calls after an end, which are reported, may be the reason for open ends
            for node in (node for node in ends if node.part != "sinks"):
                pointer = f"/pipelines/{self._paths[node]}"
                self.findings.append(check.open_end(pointer, node.location, self.name, _label(node)))
        for node in sorted(nodes, key=lambda node: (PARTS.index(node.part), node.number)):
            self._node(node)
        for merge in merges:
            self._merge(merge)
        check.settle_times([self.line])
        self.findings += declare_codecs([self.line])

    def _number(self, nodes: list[PipelineNode]) -> None:
        """Set the path of each node in the topology, e.g. `0/steps/1`.

        A computation's named outputs, used or not, get the paths directly after the computation's path.
        """
        for part in PARTS:
            number = 0
            for node in (node for node in nodes if node.part == part):
                self._paths[node] = f"0/{part}/{number}"
                if node.method != "output":
                    number += 1 + len(_outputs(node))
        for node in nodes:
            declared = _outputs(node.inputs[0]) if node.method == "output" else ()
            if node.value in declared:
                base = int(self._paths[node.inputs[0]].rpartition("/")[2])
                self._paths[node] = f"0/steps/{base + 1 + declared.index(node.value)}"

    def _node(self, node: PipelineNode) -> None:
        path = self._paths[node]
        place = Place(node.method, "/pipelines/" + path, node.location, self.findings)
        inputs = tuple(sorted((self._paths[each] for each in node.inputs), key=_document_order))
        self._times[node] = bool(node.inputs) and all(self._times[each] for each in node.inputs)
        if node.part == "sinks":
            self.sink(self.line, place, node.value, self.name, inputs)
        elif node.part == "sources":
            self._source(place, node)
        else:
            self._step(place, node, inputs)

    def _source(self, place: Place, node: PipelineNode) -> None:
        name, config = node.value
        self.source(self.line, place, config, check.name(place, "source", name))
        declared = self.line.sources[-1:]
        if declared and declared[0].path == self._paths[node]:
            self._times[node] = declared[0].gives_time

    def _step(self, place: Place, node: PipelineNode, inputs: tuple[str, ...]) -> None:
        value, policy = node.value, check.policy(place, node.on_error)
        state_class = getattr(value, "state_class", None)
        if node.method == "output":
            self._output(place, node)
        elif node.method == "merge":
            place.wrong("pipeline", shown(value), "a Pipeline")
        elif node.method == "collect":
            path = self._paths[node]
            self.line.steps.append(model.Step(path, "collect", "collect", inputs, None, node.location))
        elif node.method == "key_by":
            self._key_by(place, node, inputs, policy)
        elif isinstance(value, model.RemoteComponent):
            self._remote(place, node, inputs, policy)
        elif isinstance(value, Windows):
            self._windows(place, node, inputs, policy)
        elif isinstance(value, (TimedWindowsBuilder, CountWindowsBuilder)):
            fix = "end them with .over(YourAggregation)"
            place.wrong("computation", repr(value), "windows with an aggregation", fix=fix)
        elif hasattr(value, "state_class") and state_class is None:
            declared = f'@wallaroo.{value.kind}("{value.name()}", state=StateClass)'
            fix = f"name its state, {declared}, and return the output alone"
            component.other_api(place, "computation", value, component.BUILDER, component.SOURCE, fix=fix)
        else:
            self._computation(place, node, inputs, policy)

    def _output(self, place: Place, node: PipelineNode) -> None:
        """Check that the computation before a call of `output` declares an output of this name.

        The step of the output was added with the step of the computation.
        """
        first, *others = node.inputs
        declared = () if others else _outputs(first)
        if node.value not in declared:
            step = "what is merged" if others else f'{first.part[:-1]} "{_label(first)}"'
            hint = did_you_mean(node.value, declared) if isinstance(node.value, str) else ""
            declare = f"outputs=({shown(node.value)},) with the computation"
            place.add("T273", step=step, output=shown(node.value), hint=hint, declare=declare)

    def _computation(self, place: Place, node: PipelineNode, inputs: tuple[str, ...], policy: str) -> None:
        state_class = getattr(node.value, "state_class", None)
        call = component.computation(place, node.value, has_state=state_class is not None)
        if call is None:
            return
        if state_class is None:
            self.step(self.line, place, node.value, call, inputs, None, policy)
            return
        build = self.state_build(place, state_class)
        if build is None:
            return
        state = model.State(self._state_name(call.name), state_class, build, is_by_message=True)
        step = self.step(self.line, place, node.value, call, inputs, state, policy)
        step.is_always_persisted = True
        self.note(step.path + "/state", state_class)

    def _remote(self, place: Place, node: PipelineNode, inputs: tuple[str, ...], policy: str) -> None:
        component: model.RemoteComponent = node.value
        state = None
        if component.kind.startswith("state"):
            state = model.State(self._state_name(component.name), component, dict, is_by_message=True)
        self.remote(self.line, place, component, inputs, state, policy)

    def _windows(self, place: Place, node: PipelineNode, inputs: tuple[str, ...], policy: str) -> None:
        windows: Windows = node.value
        aggregation = component.instance(place, "aggregation", windows.aggregation, "Aggregation", "an Aggregation")
        parameters: dict[str, tuple[str, ...]] = {
            "initial_accumulator": (), "update": ("input", "accumulator"),
            "combine": ("accumulator1", "accumulator2"), "output": ("key", "accumulator"),
        }  # fmt: skip
        if aggregation is None:
            return
        if takes(getattr(aggregation, "output", None), "bounds"):
            parameters["output"] += ("bounds",)
        for name, expected in parameters.items():
            if component.method(place, "aggregation", aggregation, (name,), expected) is None:
                return
        name = aggregation.name() if callable(getattr(aggregation, "name", None)) else shown_name(type(aggregation))
        state = model.State(
            self._state_name(name), type(aggregation), aggregation.initial_accumulator, is_by_message=True
        )
        call = component.ComponentMethods("window", name, aggregation.update, outputs=component.outputs_of(aggregation))
        step = self.step(self.line, place, aggregation, call, inputs, state, policy)
        step.aggregation = aggregation
        step.window = windows.document(has_event_time=self._times[node])

    def _key_by(self, place: Place, node: PipelineNode, inputs: tuple[str, ...], policy: str) -> None:
        extractor = component.instance(place, "key_extractor", node.value, "key_extractor", "a key extractor")
        run = extractor and component.method(place, "key_extractor", extractor, ("extract_key",), ("data",))
        if run:
            name = extractor.name() if callable(getattr(extractor, "name", None)) else shown_name(type(extractor))
            call = component.ComponentMethods("key_by", name, run)
            self.step(self.line, place, extractor, call, inputs, None, policy)

    def _merge(self, merge: Merge) -> None:
        place = Place("merge", "/pipelines/0", merge.location, self.findings)
        paths = {self._paths[node] for node in merge.left}
        for node in (node for node in merge.right if self._paths[node] in paths):
            place.add(
                "T212", method="merge", previous=f'"{_label(node)}"', reason="both sides end in it",
                fix="merge pipelines that have different last steps",
            )  # fmt: skip

    def _state_name(self, name: str) -> str:
        number, unique = 1, name
        while unique in self._states:
            number += 1
            unique = f"{name} {number}"
        self._states.add(unique)
        return unique


def _reachable(ends: tuple[PipelineNode, ...]) -> list[PipelineNode]:
    """Return all nodes from the sources to the last nodes, in the order of the program's calls."""
    nodes: set[PipelineNode] = set()
    waiting = list(ends)
    while waiting:
        node = waiting.pop()
        if node not in nodes:
            nodes.add(node)
            waiting += node.inputs
    return sorted(nodes, key=lambda node: node.number)


def _outputs(node: PipelineNode) -> tuple[str, ...]:
    """Return the outputs that a node's computation declares."""
    return component.outputs_of(node.value) if node.method == "to" else ()


def _document_order(path: str) -> tuple[int, int]:
    _, part, number = path.split("/")
    return PARTS.index(part), int(number)


def _label(node: PipelineNode) -> str:
    if isinstance(node.value, str):  # for an output, the value is the name
        return node.value
    return str(node.value[0]) if node.part == "sources" else getattr(node.value, "__name__", node.method)
