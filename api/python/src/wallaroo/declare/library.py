"""Computations that one program offers, so that another program, in any language, uses them as its steps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wallaroo.check import check
from wallaroo.check.state_check import check_state
from wallaroo.component import component
from wallaroo.component.application import Application, Pipeline, RemoteComponent, Source, State, Step
from wallaroo.component.signature import shown_name
from wallaroo.diagnostic.diagnostic import Diagnostic, did_you_mean, shown
from wallaroo.diagnostic.error import Place, WallarooParameterError
from wallaroo.diagnostic.location import Location, called_from, declared_at
from wallaroo.message.codec import NATIVE, codec_of, expected_codec
from wallaroo.message.output import collected


class Program:
    """Another program that runs steps of this application; made by `wallaroo.other_program`."""

    def __init__(self, worker: str, target: str) -> None:
        self.worker, self.target = worker, target

    def __repr__(self) -> str:
        return f"<Program {self.worker} {self.target}>"

    def computation(
        self, name: str, *, input: str = "json", output: str = "json", outputs: Mapping[str, str] | None = None
    ) -> RemoteComponent:
        """Return a computation of the program, with at most one output message for each input message.

        Args:
            name: Name under which the program offers the computation.
            input: Codec of its input: "bytes", "string", "int64", "float64", "json" or "protobuf:FULL.NAME".
            output: Codec of its output.
            outputs: Codecs of its named outputs, by name.

        Raises:
            WallarooParameterError: T207 if the name is not valid, or a codec does not exist.
        """
        return self._component("computation", name, input, output, outputs or {})

    def computation_multi(
        self, name: str, *, input: str = "json", output: str = "json", outputs: Mapping[str, str] | None = None
    ) -> RemoteComponent:
        """Return a computation of the program that returns any number of messages; arguments as for `computation`."""
        return self._component("computation_multi", name, input, output, outputs or {})

    def state_computation(
        self, name: str, *, input: str = "json", output: str = "json", outputs: Mapping[str, str] | None = None
    ) -> RemoteComponent:
        """Return a state computation of the program. Messages have their key from `key_by` or `collect`."""
        return self._component("state_computation", name, input, output, outputs or {})

    def state_computation_multi(
        self, name: str, *, input: str = "json", output: str = "json", outputs: Mapping[str, str] | None = None
    ) -> RemoteComponent:
        """Return a state computation that returns any number of messages; keys as for `state_computation`."""
        return self._component("state_computation_multi", name, input, output, outputs or {})

    def _component(self, kind: str, name: str, input: str, output: str, outputs: Mapping[str, str]) -> RemoteComponent:
        place = Place(kind, "", called_from(), [])
        checked = check.name(place, "component", name)
        for parameter, value in (("input", input), ("output", output), *outputs.items()):
            _check_codec(place, parameter, value)
        _raise(place.findings)
        return RemoteComponent(self.worker, self.target, checked, kind, input, output, dict(outputs))


def other_program(worker: str, target: str) -> Program:
    """Declare another program, in Python or Go, that runs steps of this application.

    Args:
        worker: Name for the program's worker in the topology; not "main".
        target: A Python file or module, or a Go package directory, relative to this program's directory.

    Raises:
        WallarooParameterError: T207 or T210 if `worker` is not a valid name; T207 if `target` is empty.

    Example:
        >>> scorer = other_program("scorer", "scorer")
        >>> score = scorer.computation("score", input="json", output="float64")
        >>> score.worker, score.name, score.kind
        ('scorer', 'score', 'computation')
    """
    place = Place("other_program", "", called_from(), [])
    name = check.name(place, "worker", worker)
    if name == "main" or not isinstance(target, str) or not target:
        wrong, expected = (worker, 'a name other than "main"') if name == "main" else (target, "a file or directory")
        place.wrong("worker" if name == "main" else "target", shown(wrong), expected)
    _raise(place.findings)
    return Program(name, target)


@dataclass(slots=True)
class Offer:
    """A computation that a program offers to other programs; made by `offer`.

    Attributes:
        step: The computation as a step. The path of the step is the name of the computation.
        symbol: Name of the user's function or class.
    """

    step: Step
    input: str
    output: str
    symbol: str
    location: Location
    outputs: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return name, kind and codecs, which must be the same in the program that uses the computation."""
        offer = {"name": self.step.name, "kind": self.step.kind, "input": self.input, "output": self.output}
        outputs = [{"name": name, "codec": self.outputs[name]} for name in self.step.outputs]
        return offer | ({"outputs": outputs} if outputs else {})


@dataclass(slots=True)
class Library:
    """The computations of a program without pipelines, which other programs use by `wallaroo.other_program`.

    `build_library` makes it.
    """

    offers: dict[str, Offer]

    def application(self) -> Application:
        """Return the offered computations as an application without pipelines, for the worker."""
        return Application("library", [], [], offers={name: offer.step for name, offer in self.offers.items()})


def offer(value: Any, *, input: str = "json", output: str = "json", outputs: Mapping[str, str] | None = None) -> Offer:
    """Offer a computation to other programs, under its own name.

    Args:
        value: A function with `@computation`, `@computation_multi`, `@state_computation(name, state=Cls)` or
            `@state_computation_multi(name, state=Cls)`, without timers and ttl.
        input: Codec of its input messages: "bytes", "string", "int64", "float64", "json" or "protobuf:FULL.NAME". For
            protobuf the program must import the generated module before this call.
        output: Codec of its output messages.
        outputs: Codecs of its named outputs, by name; "json" for outputs that are not in the mapping.

    Raises:
        WallarooParameterError: T207 if `value` is not such a function, or a codec does not exist; T273 if the
            computation does not declare an output of `outputs`.

    Example:
        >>> import wallaroo
        >>> @wallaroo.computation("length")
        ... def length(text):
        ...     return len(text)
        >>> offer(length, input="string", output="int64").to_json()
        {'name': 'length', 'kind': 'computation', 'input': 'string', 'output': 'int64'}
    """
    place = Place("offer", "", called_from(), [])
    named = outputs or {}
    for parameter, codec in (("input", input), ("output", output), *named.items()):
        _check_codec(place, parameter, codec)
    state_class = getattr(value, "state_class", None)
    call = component.computation(place, value, has_state=state_class is not None)
    if call is not None:
        _check_outputs(place, call, named)
        if call.timers or call.ttl_ms:
            fix = "leave timers and ttl out, or use it in a pipeline of its own program"
            place.wrong("computation", f"{call.name}, which has timers or a ttl", "a computation without them", fix=fix)
    _raise(place.findings)
    assert call is not None
    kept = None if state_class is None else State(call.name, state_class, state_class, is_by_message=True)
    if kept is not None:
        check_state(place, call, kept)
        _raise(place.findings)
    step = Step(call.name, call.name, call.kind, (), collected(call.run), place.location, kept)
    step.is_always_persisted, step.outputs = kept is not None, call.outputs
    codecs = {name: named.get(name, "json") for name in call.outputs}
    return Offer(step, input, output, shown_name(value), Location(*declared_at(value)), codecs)


def build_library(offers: Sequence[Offer]) -> Library:
    """Return the result of `application_setup` in a program that only offers computations to other programs.

    Args:
        offers: Results of `wallaroo.offer`: at least one, all with different names.

    Example:
        >>> import wallaroo
        >>> @wallaroo.computation(name="double")
        ... def double(number):
        ...     return 2 * number
        >>> def application_setup(args):
        ...     return build_library([offer(double, input="int64", output="int64")])
        >>> isinstance(application_setup([]), Library)
        True

    Raises:
        WallarooParameterError: T207 if `offers` is empty, or two of them have the same name.
    """
    place = Place("build_library", "", called_from(), [])
    names = [each.step.name for each in offers if isinstance(each, Offer)]
    if not names or len(set(names)) < len(offers):
        expected = "components with names of their own, at least one"
        place.wrong("offers", shown(names), expected, fix="pass what wallaroo.offer(...) returns, each name once")
    _raise(place.findings)
    return Library({each.step.name: each for each in offers})


def declare_codecs(pipelines: Iterable[Pipeline]) -> list[Diagnostic]:
    """For messages that go to another program, give their sources and steps the codec that this program reads.

    This is done once all pipelines are declared. The result has a finding (T261) for each source or step whose messages
    would need two codecs.
    """
    findings: list[Diagnostic] = []
    for pipeline in pipelines:
        parts: dict[str, Source | Step] = {source.path: source for source in pipeline.sources}
        parts.update({step.path: step for step in pipeline.steps})
        for step in pipeline.steps:
            if step.remote is not None and step.kind != "output":
                producers = [parts[path] for path in step.inputs]
                findings += filter(None, (_declare_codec(each, step, step.remote.input) for each in producers))
    return findings


def _declare_codec(producer: Source | Step, step: Step, codec: str) -> Diagnostic | None:
    if producer.codec == NATIVE:
        producer.codec = codec
    if producer.codec == codec:
        return None
    return Diagnostic.of(
        "T261", pointer="/pipelines/" + step.path, **step.location.shown()._asdict(), step=step.name, input=codec,
        producer=producer.name, codec=producer.codec,
    )  # fmt: skip


def _check_outputs(place: Place, call: component.ComponentMethods, outputs: Iterable[str]) -> None:
    for name in outputs:
        if name not in call.outputs:
            hint, declare = did_you_mean(name, call.outputs), f"outputs=({shown(name)},) with the computation"
            place.add("T273", step=f'component "{call.name}"', output=shown(name), hint=hint, declare=declare)


def _check_codec(place: Place, parameter: str, value: Any) -> None:
    if not isinstance(value, str) or codec_of(value) is None:
        expected, fix = expected_codec(value)
        place.wrong(parameter, shown(value), expected, fix=fix)


def _raise(findings: list[Diagnostic]) -> None:
    if findings:
        raise WallarooParameterError(findings)
