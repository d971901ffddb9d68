"""Sends messages of dead letters to their steps again, each once, however often the command is killed.

They go to the gateway in blocks. What a block has is noted before it is sent, with an id that the gateway takes once;
so the next command finishes the block of one that was killed, and knows then that its letters are in the journal.
"""

import json
import shlex
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

from wallaroo.fault import reach
from wallaroo.frame import REPLAY_PORT, encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.dead_letter import FOLDER, DeadLetter, find_letter
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.checkpoint.replay_mark import mark
from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.plan import Plan, compile_topology
from wallaroo_runtime.plan.port import Ports
from wallaroo_runtime.plan.replay import candidates, event_window_after, part_of, route_of
from wallaroo_runtime.service.store import ATTACHMENT_FILE
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Part, Topology

PENDING = "replaying"
BLOCK_BYTES = 8 * 1024 * 1024
MOST_NAMES = 8  # that a finding lists


class StepReplay:
    """Replays letters of steps and sinks; `letters_locked` is held.

    Args:
        checkpoint: Has the letters; or the directory of a remote egress, which has no way to the steps.
        stack: Closes what is opened.
        to_part: Name or path of the step or sink that takes them all, since theirs was renamed; empty: each its own.
    """

    def __init__(self, checkpoint: Path, stack: ExitStack, to_part: str = "") -> None:
        self._checkpoint, self._stack, self._to_part = checkpoint, stack, to_part
        self._pending = checkpoint / FOLDER / PENDING
        self._sent: set[str] = set()  # letters of a command that was killed
        self._block: list[tuple[str, tuple[str, str], bytes]] = []
        self._bytes = self._last = 0

    @cached_property
    def _program(self) -> tuple[Topology, Plan, str]:
        """The application that was last run, its plan, and why nothing of it can be replayed; empty: it can."""
        path = self._checkpoint / "application.json"
        try:
            manifest = read_manifest(self._checkpoint)
            topology = load_document(manifest["topology"])
            plan = compile_topology(
                topology,
                shuffle_partitions=manifest["shuffle_partitions"],
                buckets_per_partition=manifest["buckets_per_partition"],
                ports=Ports.from_json(manifest),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RunError.of("R698", path=path, reason=repr(error)) from error
        if "mode" in manifest:
            return topology, plan, "the application runs in real-time mode, where steps get messages from sources only"
        if any(name.startswith("gateway") for name in manifest.get("services", {})):
            return topology, plan, "the journal is at a remote gateway, which takes messages of sources only"
        return topology, plan, ""

    def obstacle(self, letter: DeadLetter) -> tuple[str, str]:
        """Say why a letter cannot be replayed, and what else helps; empty when it can, or where nothing else does.

        Raises:
            RunError: R698, what the application is cannot be read.
        """
        if (self._checkpoint / ATTACHMENT_FILE).is_file():
            return f'it failed at "{letter.record.step}"; an egress knows the way to sources only', ""
        topology, plan, reason = self._program
        if reason:
            return reason, ""
        part = self._part_of(letter)
        if part is None:
            return self._gone(topology, letter)
        route = route_of(plan.stages, _moved(letter.record, part.path, part.name))
        if isinstance(route, str):
            return route, ""
        window = event_window_after(topology, part)
        return f'the window "{window}" takes its results by a time that its letter does not have' if window else "", ""

    def _part_of(self, letter: DeadLetter) -> Part | None:
        """Return the step or sink to which a letter goes; None: which one is not known."""
        wanted = letter.record
        if self._to_part:
            wanted = _moved(wanted, self._to_part, self._to_part)
        return part_of(self._program[0], wanted)

    def _gone(self, topology: Topology, letter: DeadLetter) -> tuple[str, str]:
        names = candidates(topology, letter.record)
        known = ", ".join(f'"{name}"' for name in names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
        what = "state steps" if letter.record.has_key else "steps and sinks"
        if self._to_part:
            return f'--as "{self._to_part}" is not the name of one of its {what}, which are {known or "none"}', (
                f"give one of these names{', or the path of the part, as `wallaroo explain` shows it' if names else ''}"
            )
        reason = f'"{letter.record.step}" ({letter.record.path}) is no longer in the application'
        if not names:
            return reason, ""
        return f"{reason}, whose {what} are {known}", (
            "if it was renamed, say what it is called now: "
            f"`wallaroo dead-letters replay CHECKPOINT --all --step {shlex.quote(letter.record.step)}"
            f" --as {shlex.quote(names[0])}`"
        )

    def add(self, letter: DeadLetter) -> int:
        """Take a letter without obstacle; returns how many were journaled by the way.

        Raises:
            RunError: R777.
        """
        before = self._resume()
        if letter.id in self._sent:
            return before
        part = self._part_of(letter)
        assert part is not None
        place = (part.path, part.name)
        value = _value(_moved(letter.record, *place))
        sent = self.finish() if self._block and self._bytes + len(value) > BLOCK_BYTES else 0
        self._block.append((letter.id, place, value))
        self._bytes += len(value)
        return before + sent

    def finish(self) -> int:
        """Have the letters that were taken journaled; returns how many.

        Raises:
            RunError: R777.
        """
        if not self._block:
            return 0
        block, self._block, self._bytes = self._block, [], 0
        number = max(self._last + 1, time.time_ns())
        note = json.dumps({"id": number, "letters": {id_: place for id_, place, _ in block}}).encode("ascii")
        replace_file(self._pending, note, durable=True)
        self._send(number, [id_ for id_, _, _ in block], [value for _, _, value in block])
        return len(block)

    def _send(self, number: int, ids: list[str], values: list[bytes]) -> None:
        reach("replay.before_send")
        self._last = self._gateway(number, encode_frame(values, port=REPLAY_PORT))
        reach("replay.before_mark")
        mark(self._checkpoint, ids)
        reach("replay.before_end")
        self._pending.unlink()

    @cached_property
    def _gateway(self) -> Callable[..., int]:
        # Late: most commands need no gRPC.
        from wallaroo_runtime.peer.replay import sending_to

        return self._stack.enter_context(sending_to(self._checkpoint))

    def _resume(self) -> int:
        """Finish, once, the block of a command that was killed; returns how many letters it has."""
        if self._last or self._sent:
            return 0
        self._last = max(1, self._gateway(0))
        try:
            note = json.loads(self._pending.read_bytes())
            number = int(note["id"])
            places = {str(id_): (str(path), str(step)) for id_, (path, step) in note["letters"].items()}
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError.of("R698", path=self._pending, reason=repr(error)) from error
        # Those that were removed since cannot be sent a second time; the others keep the id of their block.
        letters = list(self._left(places))
        self._sent.update(letter.id for letter in letters)
        if letters:
            values = [_value(_moved(letter.record, *places[letter.id])) for letter in letters]
            self._send(number, [letter.id for letter in letters], values)
        else:
            self._pending.unlink()
        return len(letters)

    def _left(self, ids: Iterable[str]) -> Iterable[DeadLetter]:
        for id_ in ids:
            try:
                yield find_letter(self._checkpoint, id_)
            except RunError as error:
                if error.exit_code != USAGE:
                    raise


def _moved(letter: pb.DeadLetter, path: str, step: str) -> pb.DeadLetter:
    """Return a letter with the path and name that its part has now."""
    if (letter.path, letter.step) == (path, step):
        return letter
    moved = pb.DeadLetter()
    moved.CopyFrom(letter)
    moved.path, moved.step = path, step
    return moved


def _value(letter: pb.DeadLetter) -> bytes:
    """Return a letter as the journal has it: without the traceback, for which a frame may have no room."""
    kept = pb.DeadLetter()
    kept.CopyFrom(letter)
    kept.traceback = ""
    return bytes(kept.SerializeToString())
