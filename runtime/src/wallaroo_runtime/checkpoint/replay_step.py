"""Sends messages of dead letters to their steps again, each once, however often the command is killed.

They go to the gateway in blocks. What a block has is noted before it is sent, with an id that the gateway takes once;
so the next command finishes the block of one that was killed, and knows then that its letters are in the journal.
"""

import json
import time
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

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
from wallaroo_runtime.plan.replay import event_window_after, part_of, route_of
from wallaroo_runtime.service.store import ATTACHMENT_FILE
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

if TYPE_CHECKING:
    from wallaroo_runtime.peer.replay import Blocks

PENDING = "replaying"
BLOCK_BYTES = 8 * 1024 * 1024


class StepReplay:
    """Replays letters of steps and sinks; `letters_locked` is held.

    Args:
        checkpoint: Has the letters; or the directory of a remote egress, which has no way to the steps.
        stack: Closes what is opened.
    """

    def __init__(self, checkpoint: Path, stack: ExitStack) -> None:
        self._checkpoint, self._stack = checkpoint, stack
        self._pending = checkpoint / FOLDER / PENDING
        self._sent: set[str] = set()  # letters of a command that was killed
        self._block: list[tuple[str, bytes]] = []
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

    def obstacle(self, letter: DeadLetter) -> str:
        """Say why a letter cannot be replayed; empty when it can.

        Raises:
            RunError: R698, what the application is cannot be read.
        """
        if (self._checkpoint / ATTACHMENT_FILE).is_file():
            return f'it failed at "{letter.record.step}"; an egress knows the way to sources only'
        topology, plan, reason = self._program
        if reason:
            return reason
        part = part_of(topology, letter.record)
        if part is None:
            return f'"{letter.record.step}" ({letter.record.path}) is no longer in the application'
        route = route_of(plan.stages, _moved(letter.record, part.path, part.name))
        if isinstance(route, str):
            return route
        window = event_window_after(topology, part)
        return f'the window "{window}" takes its results by a time that its letter does not have' if window else ""

    def add(self, letter: DeadLetter) -> int:
        """Take a letter without obstacle; returns how many were journaled by the way.

        Raises:
            RunError: R777.
        """
        before = self._resume()
        if letter.id in self._sent:
            return before
        part = part_of(self._program[0], letter.record)
        assert part is not None
        value = _value(_moved(letter.record, part.path, part.name))
        sent = self.finish() if self._block and self._bytes + len(value) > BLOCK_BYTES else 0
        self._block.append((letter.id, value))
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
        number, ids = max(self._last + 1, time.time_ns()), [id_ for id_, _ in block]
        note = json.dumps({"id": number, "letters": ids}).encode("ascii")
        replace_file(self._pending, note, durable=True)
        self._send(number, ids, [value for _, value in block])
        return len(ids)

    def _send(self, number: int, ids: list[str], values: list[bytes]) -> None:
        reach("replay.before_send")
        self._last = self._gateway.send(number, encode_frame(values, port=REPLAY_PORT))
        reach("replay.before_mark")
        mark(self._checkpoint, ids)
        reach("replay.before_end")
        self._pending.unlink()

    @cached_property
    def _gateway(self) -> "Blocks":
        # Late: most commands need no gRPC.
        from wallaroo_runtime.peer.replay import blocks_of

        return self._stack.enter_context(blocks_of(self._checkpoint))

    def _resume(self) -> int:
        """Finish, once, the block of a command that was killed; returns how many letters it has."""
        if self._last or self._sent:
            return 0
        self._last = max(1, self._gateway.send(0))
        try:
            note = json.loads(self._pending.read_bytes())
            number, ids = int(note["id"]), [str(each) for each in note["letters"]]
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError.of("R698", path=self._pending, reason=repr(error)) from error
        # Those that were removed since cannot be sent a second time; the others keep the id of their block.
        letters = list(self._left(ids))
        self._sent.update(letter.id for letter in letters)
        if letters:
            self._send(number, [letter.id for letter in letters], [_value(letter.record) for letter in letters])
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
