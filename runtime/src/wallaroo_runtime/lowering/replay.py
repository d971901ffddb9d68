"""Messages of dead letters that run again, where a task of level 0 has read them in the journal.

A frame of the journal has them as the dead letters themselves. What cannot run, since the program is another one now,
becomes a dead letter again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from wallaroo.diagnostic import Diagnostic
from wallaroo.frame import DEAD_LETTER_PORT, encode_frame, read_frame, read_header, split_frames
from wallaroo.key import bucket_of
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.plan.replay import ENTRY, Route, route_of
from wallaroo_runtime.topology.model import Topology

Run = Callable[[Stage, list[bytes]], Iterable[list[pb.Output]]]
Lacks = Callable[[Stage], str]


@dataclass(frozen=True, slots=True)
class Again:
    """A dead letter whose message runs again; sequence and time are those of its place in the journal."""

    letter: pb.DeadLetter
    sequence: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Replays:
    """Runs messages of dead letters again; pickles into tasks.

    Attributes:
        stages: All of the plan.
        bucket_count: Of the plan.
        names: Path and name of each step and sink.
    """

    stages: tuple[Stage, ...]
    bucket_count: int
    names: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, plan: Plan, topology: Topology) -> "Replays":
        """Return those of an application."""
        names = frozenset((part.path, name) for part in topology.parts() for name in (part.name, part.path))
        return cls(plan.stages, plan.bucket_count, names)

    def run(self, frames: Iterable[bytes], run: Run, lacks: Lacks) -> Iterator[list[pb.Output]]:
        """Run the messages of frames of the journal.

        Args:
            frames: Of port 65532.
            run: Runs a stage without state.
            lacks: Says what the worker of a stage cannot do; empty: it can.

        Yields:
            Outputs: frames of a state step for the bucket of their key, or what a stage gives.
        """
        stages: dict[str, tuple[Route, list[Again]]] = {}
        for again in _read(frames):
            route = self._route(again.letter, lacks)
            if isinstance(route, str):
                yield [_refused(again, route)]
            elif route.has_state:
                yield [self._keyed(again, route)]
            else:
                stages.setdefault(again.letter.path, (route, []))[1].append(again)
        for route, mine in stages.values():
            data = [_frame(again, route) for again in mine]
            by_sequence = {again.sequence: again for again in mine}
            for outputs in run(route.stage, data):
                yield [_corrected(output, route, by_sequence) for output in outputs]

    def _route(self, letter: pb.DeadLetter, lacks: Lacks) -> Route | str:
        if (letter.path, letter.step) not in self.names:
            return f'the program has no step or sink "{letter.step}" at {letter.path}'
        route = route_of(self.stages, letter)
        return route if isinstance(route, str) else lacks(route.stage) or route

    def _keyed(self, again: Again, route: Route) -> pb.Output:
        key = again.letter.key
        frame = _frame(again, route, keys=(key,))
        return pb.Output(port=route.node.port, bucket=bucket_of(key, self.bucket_count), frame=frame)


def _read(frames: Iterable[bytes]) -> Iterator[Again]:
    for data in frames:
        for header, start, _ in split_frames(data):
            for at, value in enumerate(read_frame(data, start).values()):
                yield Again(pb.DeadLetter.FromString(value), header.sequence + at, header.timestamp_ms)


def _frame(again: Again, route: Route, keys: tuple[bytes, ...] = ()) -> bytes:
    """Return the message in a frame of its own: what follows another value in a frame may be written differently."""
    letter = again.letter
    return encode_frame(
        [letter.input],
        port=route.node.port,
        sequence=again.sequence,
        encoding=letter.encoding,
        timestamp_ms=again.timestamp_ms,
        keys=keys,
        key_indexes=[0] * len(keys),
        sequences=[0],
    )


def _refused(again: Again, reason: str) -> pb.Output:
    finding = Diagnostic.of("R776", step=again.letter.step, reason=reason)
    letter = pb.DeadLetter()
    letter.CopyFrom(again.letter)
    letter.code, letter.error = finding.code, finding.message.removeprefix(f"{letter.step}: ")
    letter.traceback = ""
    letter.sequence, letter.timestamp_ms = again.sequence, again.timestamp_ms
    return _letters([letter], again.timestamp_ms)


def _letters(letters: list[pb.DeadLetter], timestamp_ms: int) -> pb.Output:
    first = min(letter.sequence for letter in letters)
    frame = encode_frame(
        [letter.SerializeToString() for letter in letters],
        port=DEAD_LETTER_PORT,
        sequence=first,
        timestamp_ms=timestamp_ms,
        sequences=[letter.sequence - first for letter in letters],
    )
    return pb.Output(port=DEAD_LETTER_PORT, bucket=-1, frame=frame)


def _corrected(output: pb.Output, route: Route, again: dict[int, Again]) -> pb.Output:
    """Return an output whose dead letters have the source of the message, and its step in place of the RECEIVE."""
    if output.port != DEAD_LETTER_PORT:
        return output
    letters = []
    for value in read_frame(output.frame).values():
        letter = pb.DeadLetter.FromString(value)
        first = again[letter.sequence].letter
        letter.port = first.port
        if letter.path == route.node.path:
            letter.path, letter.step, letter.preview = first.path, first.step, first.preview
            letter.input, letter.encoding = first.input, first.encoding
        letters.append(letter)
    return _letters(letters, read_header(output.frame).timestamp_ms)


def counted(counts: Iterable[pb.StepCount]) -> Iterator[pb.StepCount]:
    """Yield what a stage has counted, with dead letters of the RECEIVE as those of the part that follows it."""
    for count in counts:
        path, dead = count.path.removesuffix(ENTRY), count.dead_letters
        if path != count.path:
            yield pb.StepCount(path=path, messages_in=dead, dead_letters=dead)
        else:
            yield count
