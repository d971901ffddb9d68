"""Sends dead letters of decoders to their source once more.

Only a letter whose failing part is a source can be sent again: its input is the message as it came over the wire. What
failed at a later step is one of the results of a source message, in the worker's own form; sending the source message
again would repeat its other results, and no source takes a step's input.
"""

import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo.frame import FRAMED, PLAIN
from wallaroo_runtime.checkpoint.dead_letter import FOLDER, DeadLetter
from wallaroo_runtime.checkpoint.directory import MANIFEST
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.durable.file import replace_file, sync_file
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.framing import KINDS, framer, misfit
from wallaroo_runtime.service.store import ATTACHMENT_FILE
from wallaroo_runtime.system.lock import TRY, take_lock
from wallaroo_runtime.system.process import process_start_time
from wallaroo_runtime.topology.override import parse_address

MARKS = "replayed"
BLOCK_BYTES = 8 * 1024 * 1024
ACKNOWLEDGE_SECONDS = 60.0
MAX_FINDINGS = 20


@dataclass(frozen=True, slots=True)
class SourceOf:
    """What a replay must know of a source."""

    name: str
    path: str
    framing: str


@dataclass
class Replayed:
    """What came of a replay.

    Attributes:
        sent: Letters whose source has them in its journal again.
        before: Letters that were left out because they had been replayed before.
        refused: Letters that cannot be replayed.
        findings: R621 for the first of these.
    """

    sent: int = 0
    before: int = 0
    refused: int = 0
    findings: list[Diagnostic] = field(default_factory=list)


@dataclass
class _Block:
    """Messages for one source that are marked together."""

    ids: list[str] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)


class Replay:
    """Replays letters of one checkpoint.

    Args:
        checkpoint: The checkpoint directory, or that of a remote egress.
        to: HOST:PORT to send to; empty: where the running application's sources listen, which an egress does not know.
        again: Whether letters that were replayed before are sent once more.

    Raises:
        RunError: R616 or R698, what the application is cannot be read.
    """

    def __init__(self, checkpoint: Path, *, to: str = "", again: bool = False) -> None:
        self._checkpoint, self._again = checkpoint, again
        self._to = parse_address("--to", to) if to else None
        self._sources = read_sources(checkpoint)
        self._addresses = {} if to else _listening(checkpoint)

    def run(self, letters: Iterable[DeadLetter]) -> Replayed:
        """Send the letters and mark those that are safe in the journal; in blocks, so that memory is bounded.

        A block is marked when the source has acknowledged it: a replay that is killed in between sends it again.

        Raises:
            RunError: R618, the source cannot be reached or did not take the messages.
        """
        result = Replayed()
        with letters_locked(self._checkpoint):
            blocks: dict[int, _Block] = {}
            for letter in self._replayable(letters, result):
                port = letter.record.port
                block = blocks.setdefault(port, _Block())
                block.ids.append(letter.id)
                block.data += _message(letter, self._sources[port].framing)
                if len(block.data) >= BLOCK_BYTES:
                    result.sent += self._send(port, blocks.pop(port))
            for port, block in blocks.items():
                result.sent += self._send(port, block)
        return result

    def _replayable(self, letters: Iterable[DeadLetter], result: Replayed) -> Iterator[DeadLetter]:
        """Yield what shall be sent, and count the rest."""
        marked = set() if self._again else set(read_marks(self._checkpoint))
        for letter in letters:
            if letter.id in marked:
                result.before += 1
                continue
            reason = self._obstacle(letter)
            if not reason:
                yield letter
                continue
            result.refused += 1
            if len(result.findings) < MAX_FINDINGS:
                result.findings.append(_not_replayable(letter, reason))

    def _obstacle(self, letter: DeadLetter) -> str:
        """Say why a letter cannot be replayed; empty when it can."""
        record = letter.record
        if "/sources/" not in record.path:
            return f'it failed at "{record.step}" ({record.path}), after its source'
        source = self._sources.get(record.port)
        if source is None:
            return f'source "{record.step}" is no longer in the application'
        if source.framing not in (*KINDS, "worker"):
            return f'source "{source.name}" is of kind {source.framing}, which takes nothing over plain TCP'
        if source.framing not in KINDS:
            return f'only the decoder of source "{source.name}" knows the bytes around a message'
        if record.encoding not in (PLAIN, FRAMED):
            return "its input is in the worker's own form"
        if not record.input and record.preview not in ("", "b''", "''", '""'):
            return "its input was too long to be kept"
        return misfit(source.framing, record.input)

    def _address(self, port: int) -> tuple[str, int]:
        if self._to is not None:
            return self._to
        if port not in self._addresses:
            at_egress = (self._checkpoint / ATTACHMENT_FILE).is_file()
            reason = "its egress does not know where; give --to" if at_egress else "the application does not run"
            raise RunError.of("R618", address=f'source "{self._sources[port].name}"', reason=reason)
        return self._addresses[port]

    def _send(self, port: int, block: _Block) -> int:
        host, tcp_port = address = self._address(port)
        try:
            with socket.create_connection(address, timeout=ACKNOWLEDGE_SECONDS) as connection:
                connection.sendall(block.data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass  # a source says nothing; its EOF is the acknowledgement
        except OSError as error:
            reason = f"{error.strerror or error}; {len(block.ids)} dead letters were not marked as replayed"
            raise RunError.of("R618", address=f"{host}:{tcp_port}", reason=reason) from error
        _mark(self._checkpoint, block.ids)
        return len(block.ids)


def _message(letter: DeadLetter, framing: str) -> bytes:
    """Return a letter's input as it came over the wire."""
    data = letter.record.input
    return data if letter.record.encoding == FRAMED else framer(framing)(data)


def _not_replayable(letter: DeadLetter, reason: str) -> Diagnostic:
    fix = f"take its input with `wallaroo dead-letters show CHECKPOINT {letter.id} --input FILE`"
    return Diagnostic.of("R621", id=letter.id, reason=reason, fix=fix)


def read_sources(directory: Path) -> dict[int, SourceOf]:
    """Return the sources of the application whose dead letters are here, by the port that their frames carry."""
    at_egress = directory / ATTACHMENT_FILE
    path = at_egress if at_egress.is_file() else directory / MANIFEST
    try:
        if path == at_egress:
            sources = json.loads(path.read_bytes())["config"]["sources"]
            return {source["port"]: SourceOf(source["name"], source["path"], source["framing"]) for source in sources}
        manifest = read_manifest(directory)
        sources = [source for pipeline in manifest["topology"]["pipelines"] for source in pipeline["sources"]]
        ports = manifest.get("ports") or {source["path"]: port for port, source in enumerate(sources)}
        return {ports[source["path"]]: SourceOf(source["name"], source["path"], _framing(source)) for source in sources}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError.of("R698", path=path, reason=repr(error)) from error


def _framing(source: Mapping[str, Any]) -> str:
    return str(source["framing"]["kind"] if source["kind"] == "tcp" else source["kind"])


def _listening(checkpoint: Path) -> dict[int, tuple[str, int]]:
    """Return where the sources of a running gateway listen; empty when none runs."""
    try:
        status = json.loads((checkpoint / "gateway.json").read_bytes())
        if process_start_time(status["pid"]) != status["start_time"]:
            return {}
        return {source["port"]: (source["host"], source["tcp_port"]) for source in status.get("sources", ())}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError.of("R698", path=checkpoint / "gateway.json", reason=repr(error)) from error


def read_marks(checkpoint: Path) -> Iterator[str]:
    """Yield the ids of the letters that were replayed."""
    try:
        with (checkpoint / FOLDER / MARKS).open(encoding="ascii") as file:
            # A line without its end was torn by a loss of power.
            yield from (line[:-1] for line in file if line.endswith("\n"))
    except FileNotFoundError:
        return


def replace_marks(checkpoint: Path, ids: Iterable[str]) -> None:
    """Leave the marks of these letters only; `letters_locked` is held."""
    content = "".join(f"{each}\n" for each in ids).encode("ascii")
    replace_file(checkpoint / FOLDER / MARKS, content, durable=True)


def _mark(checkpoint: Path, ids: list[str]) -> None:
    path = checkpoint / FOLDER / MARKS
    torn = path.exists() and not path.read_bytes().endswith(b"\n")
    with open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write((("\n" if torn else "") + "".join(f"{each}\n" for each in ids)).encode("ascii"))
    sync_file(path)


@contextmanager
def letters_locked(checkpoint: Path) -> Iterator[None]:
    """Let only one replay or prune of a checkpoint run at a time.

    Raises:
        RunError: R718, another one runs.
    """
    folder = checkpoint / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        lock = take_lock(folder, TRY)
    except BlockingIOError as error:
        raise RunError.of("R718", path=checkpoint) from error
    try:
        yield
    finally:
        os.close(lock)
