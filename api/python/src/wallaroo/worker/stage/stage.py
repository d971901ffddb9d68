"""A stage that is ready to run: the user's functions, the compiled loops around them, and the exits."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import repeat
from typing import Any

from wallaroo.check.in_place import is_new_state, is_state, state_returned
from wallaroo.component.application import DEAD_LETTER, Application, Sink, Source, Step
from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo.message import deferred_commit
from wallaroo.message.frame import FRAMED, HEADER_BYTES, PLAIN, Frame, FrameError, read_body, split_frames
from wallaroo.message.key import state_key
from wallaroo.message.output import FIT, Output, is_promise, refuse_outputs
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.chain import STATE_KINDS, ChainWriter, Link
from wallaroo.worker.stage.crossing import SendExit, values_of
from wallaroo.worker.stage.entry import SourceEntry, decoder_fail_of, entering
from wallaroo.worker.stage.exit import KeyExit, SinkExit, letter_outputs
from wallaroo.worker.stage.flight import INDEX, MESSAGE, InFlight, Words
from wallaroo.worker.stage.keyed import StateEntry, WindowEntry
from wallaroo.worker.stage.record import RecordExit, makes_rows
from wallaroo.worker.stage.user_error import fail_of, items_of, keyed_of
from wallaroo.worker.value.kafka_record import encoding, reading
from wallaroo.worker.value.letter_box import LetterBox, WrongResultError
from wallaroo.worker.value.result import checked, expected_of, listed, paired, promised, time_of
from wallaroo.worker.value.value import ValueCodec
from wallaroo.worker.value.wire import reader_of
from wallaroo.worker.window.session import window_of

STEP_KINDS = {
    "computation": pb.NODE_KIND_COMPUTATION,
    "computation_multi": pb.NODE_KIND_COMPUTATION_MULTI,
    "state_computation": pb.NODE_KIND_STATE_COMPUTATION,
    "state_computation_multi": pb.NODE_KIND_STATE_COMPUTATION_MULTI,
    "window": pb.NODE_KIND_WINDOW,
    "key_by": pb.NODE_KIND_KEY_BY,
    "collect": pb.NODE_KIND_COLLECT,
    "output": pb.NODE_KIND_OUTPUT,
}


class Stage:
    """Runs the nodes of one stage; one call at a time.

    Raises:
        DiagnosticError: W403 if the stage names a part that the application does not have.
    """

    def __init__(self, application: Application, stage: pb.Stage) -> None:
        self.id, self.nodes = stage.id, list(stage.nodes)
        self.codec = ValueCodec(application.serializer)
        self.box = LetterBox(self.codec)
        self._frame_bytes = stage.frame_bytes
        self._hosted: dict[str, Source | Step | Sink] = {node.path: node for node in application.nodes()}
        offered = {node.path: application.offers.get(node.component) for node in stage.nodes if node.component}
        self._hosted.update({path: step for path, step in offered.items() if step is not None})
        self._dropped, self._made = [0] * len(self.nodes), [0] * len(self.nodes)
        self.entered, self.visited = [0] * len(self.nodes), [0] * len(self.nodes)
        self.more = defaultdict[int, Counter[str]](Counter)  # further counts, by number of the node
        self.flight: Words = InFlight("").words
        self.note = InFlight("").note
        self.skips: dict[int, pb.Skip] = {}
        self.ordinal = 0
        self._exits: list[KeyExit | SinkExit | RecordExit | SendExit] = []
        self._entries: dict[int, SourceEntry] = {}
        self.states: dict[int, StateEntry] = {}
        self.windows: dict[int, WindowEntry] = {}
        self._links = self._link()
        self._has_outputs = any(link.outputs for link in self._links)
        names = self._globals = self._names(stage)
        writer = ChainWriter(self._links, is_custom=self.codec.is_custom)
        self.has_keys, self.has_times = writer.has_keys, writer.has_times
        exec(compile(writer.source(), f"<stage {stage.id}>", "exec"), names)
        for entry in self.windows.values():
            entry.give = names[f"run{entry.number}"]
        timed = {each.node.state_port for each in self.states.values() if each.node.ttl_ms or each.node.timers}
        for state in self.states.values():
            state.is_timed = state.node.state_port in timed
        self.loops: dict[int, Callable[..., Any]] = {
            number: names[f"run{number}"] for number, link in enumerate(self._links) if not link.input_count
        }

    def clear(self) -> None:
        """Remove the results of the previous call."""
        for part in (self._dropped, self._made, self.entered, self.visited):
            part[:] = [0] * len(part)
        self.more.clear()
        for exit_ in self._exits:
            exit_.clear()
        self.box.clear()
        self.ordinal = 0

    @contextmanager
    def call(self, index: int, flight: InFlight, skips: Iterable[pb.Skip]) -> Iterator[None]:
        """Run one call within the context: note its messages in `flight`, and skip the messages in `skips`.

        At the end wait for the commits that user code has deferred.

        Raises:
            DiagnosticError: C528 if a deferred commit failed.
        """
        self.flight, self.note = flight.words, flight.note
        words = flight.words
        self.skips = {skip.ordinal: skip for skip in skips}
        words[MESSAGE], words[INDEX] = 0, index
        refuse_outputs(is_refused=not self._has_outputs)
        try:
            yield
            flight.end_forked()  # a fork has no threads that could finish a commit
            deferred_commit.settle()
        finally:
            flight.end_forked()
            refuse_outputs(is_refused=False)
            words[MESSAGE] = 0
            self.flight, self.skips = InFlight("").words, {}

    def take(self, count: int) -> range:
        """Return the numbers of the next `count` messages of the call. The first message of a call has number 1."""
        first = self.ordinal + 1
        self.ordinal += count
        return range(first, first + count)

    def run(self, index: int, frames: bytes) -> list[pb.Output]:
        """Run a stage without state for one or more frames, and return its outputs.

        Raises:
            FrameError: The frames are damaged or do not belong to this stage.
        """
        self.clear()
        timestamp_ms = 0
        for header, start, _ in split_frames(frames):
            if header.port not in self._entries:
                msg = f"port {header.port} is not an entry of stage {self.id}"
                raise FrameError(msg)
            entry = self._entries[header.port]
            number = entry.number
            frame = read_body(header, frames, start + HEADER_BYTES)
            if not header.count:
                continue
            timestamp_ms = timestamp_ms or header.timestamp_ms
            self.box.source_port = header.port
            self.box.enter(frame)
            self.entered[number] += header.count
            ordinals: Sequence[int] = self.take(header.count)
            first = self.ordinal - header.count
            payloads, sequences = entry.payloads(frame, entering(first, self.skips, self.flight))
            self._globals[f"f{number}"] = entry.reader(header.encoding)
            self._globals[f"time{number}"] = time_of(entry.source) if header.encoding in (PLAIN, FRAMED) else None
            if len(payloads) < header.count:
                ordinals = [ordinals[sequence - header.sequence] for sequence in sequences]
            if frame.sequences:
                sequences = [frame.sequence_of(sequence - header.sequence) for sequence in sequences]
            if self.skips:
                payloads, sequences, ordinals = entry.without_skipped(
                    self.skips, self.box, payloads, sequences, ordinals
                )
            columns = self._columns(frame, [ordinal - first - 1 for ordinal in ordinals])
            self.loops[number](payloads, sequences, ordinals, self.flight, *columns)
            self.flight[MESSAGE] = 0
        return list(self.outputs(index, timestamp_ms))

    def _columns(self, frame: Frame, positions: Sequence[int]) -> Iterator[Iterable[Any]]:
        """Yield the keys and the times of messages, each only if the generated loops take it as an argument."""
        if self.has_keys:
            keys, indexes = frame.keys, frame.key_indexes
            yield [keys[indexes[position]] for position in positions] if keys else repeat(b"")
        if not self.has_times:
            return
        times = frame.times()
        yield [times[position] for position in positions]

    def order(self) -> None:
        """Sort the messages of each exit by sequence, because window steps add theirs after all other steps."""
        if self.windows and len(self.windows) + len(self.states) > 1:
            for exit_ in self._exits:
                exit_.order()

    def outputs(self, index: int, timestamp_ms: int) -> Iterator[pb.Output]:
        """Yield the frames of the call: the messages of all exits, then the dead letters."""
        for exit_ in self._exits:
            yield from exit_.outputs(index, timestamp_ms)
        if self.box.letters:
            yield from letter_outputs(self.box, index, timestamp_ms, self._frame_bytes)

    def replaced(self, number: int, run: Callable[..., Any]) -> AbstractContextManager[object]:
        """Let another function, e.g. a visitor, run in place of a state computation while the context is open."""
        step = self._hosted[self.nodes[number].path]
        assert isinstance(step, Step)
        run = checked(step, run, self._links[number].outputs) if self._has_outputs else run
        return _replaced_item(self._globals, f"f{number}", run)

    def guarded(self, number: int, after: Callable[[Any, Any], object]) -> AbstractContextManager[object]:
        """Call `after(result, state)` after each call of a step's function, while the context is open.

        If `after` raises an exception, the message fails.
        """
        plain = self._globals[f"f{number}"]

        def run(message: Any, state: Any) -> Any:
            result = plain(message, state)
            after(result, state)
            return result

        return _replaced_item(self._globals, f"f{number}", run)

    def counts(self) -> list[pb.StepCount]:
        """Return the numbers of messages in and out of each node in the call that has run.

        They are derived from the counts of entered, made and dropped messages. SEND, RECEIVE and KEY nodes count only
        dead letters, because their messages are counted at the node that made them or at the node that gets them.
        """
        unsent = {each.path: each.dead for each in self._exits if isinstance(each, SendExit)}
        left = [0] * len(self.nodes)
        entered = list(self.entered)
        counts = []
        for number, (node, link) in enumerate(zip(self.nodes, self._links, strict=True)):
            if node.kind == pb.NODE_KIND_SEND:
                counts.append(pb.StepCount(path=node.path, dead_letters=unsent[node.path]))
                continue
            if node.kind == pb.NODE_KIND_OUTPUT:
                entered[number] = self._made[number]
            dead = self.box.counts.get(node.path, 0) - unsent.get(node.path, 0)
            is_multi = node.kind in (
                pb.NODE_KIND_COMPUTATION_MULTI,
                pb.NODE_KIND_STATE_COMPUTATION_MULTI,
                pb.NODE_KIND_WINDOW,
            )
            out = self._made[number] if is_multi else entered[number] + self.visited[number] - dead
            left[number] = out - self._dropped[number]
            for reader in link.readers:
                entered[reader] += left[number]
            crosses = node.kind in (pb.NODE_KIND_KEY, pb.NODE_KIND_RECEIVE)
            came, went = (0, 0) if crosses else (entered[number], left[number])
            more = self.more.get(number)
            counts.append(
                pb.StepCount(path=node.path, messages_in=came, messages_out=went, dead_letters=dead, more=more)
            )
        return counts

    def _link_of(self, node: pb.Node) -> Link:
        hosted = self._hosted.get(node.path)
        return Link(
            node.kind,
            takes_key=node.kind in (pb.NODE_KIND_KEY, pb.NODE_KIND_SEND) and node.keys,
            has_times=node.kind in (pb.NODE_KIND_KEY, pb.NODE_KIND_SEND) and node.timestamps,
            is_coded=bool(node.codec),
            is_always_persisted=isinstance(hosted, Step) and hosted.is_always_persisted,
            is_record=isinstance(hosted, Sink) and makes_rows(hosted),
            gives_time=isinstance(hosted, Source) and hosted.event_time is not None and not node.arrival,
        )

    def _link(self) -> list[Link]:
        links = [self._link_of(node) for node in self.nodes]
        exits = (pb.NODE_KIND_KEY, pb.NODE_KIND_SINK, pb.NODE_KIND_SEND)
        number_of = {node.path: number for number, node in enumerate(self.nodes) if node.kind not in exits}
        for number, node in enumerate(self.nodes):
            for path in node.inputs:
                if path not in number_of or number_of[path] >= number:
                    raise self._unknown(path)
                links[number].input_count += 1
                if node.kind == pb.NODE_KIND_OUTPUT:
                    links[number_of[path]].outputs[node.output] = number
                else:
                    links[number_of[path]].readers.append(number)
        return links

    def _names(self, stage: pb.Stage) -> dict[str, Any]:
        """Make entries and exits. Return the functions and objects for the loops, by the names that these use."""
        names: dict[str, Any] = {"dropped": self._dropped, "made": self._made, "paired": paired, "Output": Output}
        names |= {"is_new_state": is_new_state, "is_state": is_state, "state_returned": state_returned, "FIT": FIT}
        names |= {"is_promise": is_promise, "promised": promised, "copied": self.codec.copy, "times_of": self.box.times}
        for number, node in enumerate(self.nodes):
            hosted = self._hosted.get(node.path)
            name = hosted.name if hosted is not None else node.path
            if node.kind == pb.NODE_KIND_RECEIVE:
                source, values = Source(node.path, node.path, "receive", {}, None), values_of(node, self.codec)
                self._entries[node.port] = SourceEntry(number, source, self.codec, values)
                names[f"fail{number}"] = decoder_fail_of(self.box, node, name)
            elif node.kind == pb.NODE_KIND_OUTPUT and node.output:
                continue
            elif node.kind == pb.NODE_KIND_SEND:
                send_exit = SendExit(node, name, stage, values_of(node, self.codec), self.box)
                self._exits.append(send_exit)
                names[f"send{number}"] = send_exit.put
            elif node.kind == pb.NODE_KIND_KEY and (hosted is None or isinstance(hosted, Step)):
                self._add_key(number, node, hosted, stage, names=names)
            elif isinstance(hosted, Source) and node.kind == pb.NODE_KIND_SOURCE:
                wire = reader_of(hosted, self.box)
                self._entries[node.port] = SourceEntry(number, reading(hosted), self.codec, wire=wire)
                names[f"f{number}"] = hosted.decode
                names[f"fail{number}"] = decoder_fail_of(self.box, node, name)
            elif isinstance(hosted, Sink) and node.kind == pb.NODE_KIND_SINK:
                self._add_sink(number, node, hosted, stage, names=names)
            elif isinstance(hosted, Step) and node.kind == pb.NODE_KIND_WINDOW and hosted.window is not None:
                window = window_of(hosted.aggregation, hosted.window, has_watermarks=node.watermarks)
                window.initial = hosted.state.build if hosted.state is not None else window.initial
                if self._has_outputs:
                    window.output = checked(hosted, window.output, self._links[number].outputs)
                self.windows[node.port] = WindowEntry(
                    number, node, hosted, window, values_of(node, self.codec), _give_nothing
                )
            elif isinstance(hosted, Step) and node.kind == STEP_KINDS.get(hosted.kind):
                self._add_step(number, node, hosted, names)
            else:
                raise self._unknown(node.path)
        return names

    def _add_step(self, number: int, node: pb.Node, step: Step, names: dict[str, Any]) -> None:
        names[f"f{number}"] = step.run
        if self._has_outputs and step.run is not None:
            names[f"f{number}"] = checked(step, step.run, self._links[number].outputs)
        names[f"fail{number}"] = fail_of(self.box, node, step.name)
        names[f"items{number}"] = items_of(self.box, node, step.name)
        names[f"listed{number}"] = listed
        names[f"keyed{number}"] = keyed_of(self.box, node, step.name)
        if node.kind in STATE_KINDS:
            assert step.state is not None
            names[f"wrong{number}"] = lambda result: WrongResultError(result, expected_of(step))
            if not set(node.visits) <= set(step.visits) or not set(node.timers) <= set(step.timers):
                raise self._unknown(node.path)
            closed = frozenset(map(state_key, step.state.keys)) if step.state.unknown == DEAD_LETTER else None
            values = values_of(node, self.codec)
            self.states[node.port] = StateEntry(number, node, step, step.state, closed, values)

    def _add_key(
        self, number: int, node: pb.Node, step: Step | None, stage: pb.Stage, *, names: dict[str, Any]
    ) -> None:
        """Add a KEY node. Without a partition function, messages already have a key, or all get the empty key."""
        name = node.path if step is None else step.name
        partition = step.state.partition if step is not None and step.state is not None else None
        key_exit = KeyExit(node, name, stage, values_of(node, self.codec), self.box, is_own=partition is None)
        self._exits.append(key_exit)
        names[f"f{number}"] = partition or _single_key
        names[f"fail{number}"] = fail_of(self.box, node, name)
        names[f"find{number}"], names[f"slot{number}"] = key_exit.slots.get, key_exit.slot
        names[f"freeze{number}"] = key_exit.freeze

    def _add_sink(self, number: int, node: pb.Node, sink: Sink, stage: pb.Stage, *, names: dict[str, Any]) -> None:
        names[f"f{number}"] = encoding(sink)
        names[f"fail{number}"] = fail_of(self.box, node, sink.name)
        if makes_rows(sink):
            record_exit = RecordExit(node, sink.name, stage, self.box)
            self._exits.append(record_exit)
            names[f"put{number}"], names[f"mark{number}"] = record_exit.values.append, record_exit.sequences.append
            names[f"key{number}"], names[f"short{number}"] = record_exit.keys.append, record_exit.short
            names[f"record{number}"] = record_exit.put
            return
        self._exits.append(sink_exit := SinkExit(node, sink.name, stage, self.box))
        names[f"put{number}"], names[f"mark{number}"] = sink_exit.values.append, sink_exit.sequences.append
        names[f"other{number}"], names[f"short{number}"] = sink_exit.other, sink_exit.short

    def _unknown(self, path: str) -> DiagnosticError:
        return DiagnosticError([not_hosted(f'stage "{self.id}"', path)])


def not_hosted(what: str, path: str) -> Diagnostic:
    """Return W403: a call or stage names a node, but this worker's program has no code for it."""
    return Diagnostic.of("W403", worker="main", reason=f'{what} names "{path}", which it does not host')


@contextmanager
def _replaced_item(items: dict[str, Any], name: str, value: Any) -> Iterator[None]:
    plain, items[name] = items[name], value
    try:
        yield
    finally:
        items[name] = plain


def _give_nothing(emitted: list[tuple[Any, int]], sequence: int, key: bytes) -> None:
    """Do nothing. The loops replace this function when they are compiled."""


def _single_key(message: Any) -> bytes:
    return b""
