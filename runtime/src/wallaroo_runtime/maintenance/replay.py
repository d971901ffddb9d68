"""Sends dead letters of decoders to their source again, over TCP or to their partition of a topic.

A dead letter of a decoder has the message as it arrived. A dead letter of a later step has one of several results of a
source message, in the worker's own encoding, which no source accepts.

Marks in a file say which letters were replayed.
"""

import json
import os
import shlex
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.frame import FRAMED, PLAIN
from wallaroo.message.kafka_record import KafkaRecord, connection_settings
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.dead_letter import FOLDER, StoredLetter
from wallaroo_runtime.checkpoint.directory import MANIFEST
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.durable.file import damage, replace_file, sync_file
from wallaroo_runtime.durable.record import read_record
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.framing import KINDS, framer, misfit
from wallaroo_runtime.kafka.client import Cluster
from wallaroo_runtime.kafka.frame import ORIGIN_KEY_BYTES
from wallaroo_runtime.kafka.record import emit
from wallaroo_runtime.service.attachment import ATTACHMENT_FILE, Attachment
from wallaroo_runtime.storage.outbox.sink_record import whole_record
from wallaroo_runtime.system.lock import TRY, take_lock
from wallaroo_runtime.system.process import alive
from wallaroo_runtime.topology.override import parse_address
from wallaroo_runtime.topology.secret import resolved

BLOCK_BYTES = 8 * 1024 * 1024
ACKNOWLEDGE_SECONDS = 60.0
MAX_FINDINGS = 20
STEP_FIX = "send what came to the source again, if its other results may come twice"
RERUN = "a changed program has run its message again after a kill (R754), so states may have it already"
MARKS = "replayed"


@dataclass(frozen=True, slots=True)
class ReplaySource:
    """The properties of a source that are needed to send messages to it again.

    Attributes:
        topic: Topic of Kafka; empty if the source reads no topic, or the directory is of a remote egress.
        brokers: Brokers of the topic.
        takes_records: Whether its messages are whole records.
        options: Options of the source, with those for the connection to the brokers.
    """

    name: str
    path: str
    framing: str
    topic: str = ""
    brokers: tuple[str, ...] = ()
    takes_records: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Replayed:
    """The result of a replay, in numbers of dead letters.

    Attributes:
        sent: Number of letters whose messages are in the journal or topic again.
        before: Number of letters that were left out because they had been replayed before.
        refused: Number of letters that cannot be replayed.
        findings: R621 for the first refused letters.
    """

    sent: int = 0
    before: int = 0
    refused: int = 0
    findings: list[Diagnostic] = field(default_factory=list)


@dataclass
class _Block:
    """Dead letters of one source, or of one partition of its topic. They are sent and marked as replayed together.

    Attributes:
        ids: Ids of the dead letters.
        data: The messages for a TCP source.
        records: The messages for a topic.
        size: Number of bytes of all messages.
    """

    ids: list[str] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    records: list[KafkaRecord] = field(default_factory=list)
    size: int = 0


class Replay:
    """Sends the messages of a checkpoint's dead letters to their sources again.

    Args:
        checkpoint: The checkpoint directory, or the directory of a remote egress.
        to: HOST:PORT to send to; empty for the addresses of the running application, which a remote egress lacks.
        again: Whether letters that were replayed before, or whose messages ran again after a kill, are sent once more.

    Raises:
        RunError: R616 or R698 if the application's record cannot be read.
    """

    def __init__(self, checkpoint: Path, *, to: str = "", again: bool = False) -> None:
        self._checkpoint, self._again = checkpoint, again
        self._to = parse_address("--to", to) if to else None
        self._sources = read_sources(checkpoint)
        self._addresses = {} if to else _listening(checkpoint)
        # An egress does not record the micro-batches that a changed program has run again.
        is_known = not (again or (checkpoint / ATTACHMENT_FILE).is_file())
        self._rerun = read_manifest(checkpoint).rerun_batches if is_known else ()

    def run(self, letters: Iterable[StoredLetter]) -> Replayed:
        """Send the messages of dead letters. Mark the letters as replayed when journal or topic has the messages.

        Letters are sent in blocks, which limits the memory. A block is marked once the source has acknowledged it. If a
        replay is killed earlier, the next one repeats the block.

        Raises:
            RunError: R618 if the source cannot be reached or did not take the messages. For Kafka: R672, R673 or R727.
        """
        result, blocks = Replayed(), dict[tuple[int, int | None], _Block]()
        with letters_locked(self._checkpoint):
            for letter in self._replayable(letters, result):
                record, source = letter.record, self._sources[letter.record.port]
                place = record.port, record.origin.partition if record.origin.topic == source.topic else None
                block = blocks.setdefault(place, _Block())
                block.ids.append(letter.id)
                block.size += len(record.input)
                if source.topic:
                    block.records.append(_record_of(record, source))
                else:
                    block.data += _message(letter, source.framing)
                if block.size >= BLOCK_BYTES:
                    result.sent += self._send(*place, blocks.pop(place))
            for place, block in blocks.items():
                result.sent += self._send(*place, block)
        return result

    def _replayable(self, letters: Iterable[StoredLetter], result: Replayed) -> Iterator[StoredLetter]:
        """Yield the dead letters to send. Count in `result` those that cannot be sent or were sent before."""
        marked = set() if self._again else set(read_marks(self._checkpoint))
        for letter in letters:
            if letter.id in marked:
                result.before += 1
                continue
            reason, fix = self._why_not(letter)
            if not reason:
                yield letter
                continue
            result.refused += 1
            if len(result.findings) < MAX_FINDINGS:
                result.findings.append(self._not_replayable(letter, reason, fix))

    def _not_replayable(self, letter: StoredLetter, reason: str, fix: str) -> Diagnostic:
        show = f"wallaroo dead-letters show {shlex.quote(str(self._checkpoint))} {letter.id}"
        last = f"send its message again, in parts if it is large; `{show}` says where it came from"
        if letter.record.input:
            last = f"take its input with `{show} --input FILE`"
        return Diagnostic.of("R621", id=letter.id, reason=reason, fix=f"{fix}; else {last}" if fix else last)

    def _why_not(self, letter: StoredLetter) -> tuple[str, str]:
        """Return the reason why a dead letter cannot be sent again, and the remedy; both are empty if it can."""
        if "/sources/" not in letter.record.path:
            return f'it failed at "{letter.record.step}", and only messages of sources are sent again', STEP_FIX
        if int(letter.id.partition("-")[0]) in self._rerun:
            return RERUN, "if its result is missing, --again sends it all the same"
        source = self._sources.get(letter.record.port)
        if source is None:
            return f'source "{letter.record.step}" is no longer in the application', ""
        is_record = source.topic and self._to is None
        return (_obstacle_of_record if is_record else _obstacle)(letter.record, source), ""

    def _address(self, port: int) -> tuple[str, int]:
        if self._to is not None:
            return self._to
        if port not in self._addresses:
            at_egress = (self._checkpoint / ATTACHMENT_FILE).is_file()
            reason = "its egress does not know where; give --to" if at_egress else "the application does not run"
            raise RunError.of("R618", address=f'source "{self._sources[port].name}"', reason=reason)
        return self._addresses[port]

    def _send(self, port: int, partition: int | None, block: _Block) -> int:
        source = self._sources[port]
        if block.records:
            cluster = Cluster(source.brokers, connection_settings(resolved(source.options)), f'source "{source.name}"')
            emit(cluster, source.topic, block.records, partition=partition)
        else:
            self._send_over_tcp(port, block)
        mark(self._checkpoint, block.ids)
        return len(block.ids)

    def _send_over_tcp(self, port: int, block: _Block) -> None:
        host, tcp_port = address = self._address(port)
        try:
            with socket.create_connection(address, timeout=ACKNOWLEDGE_SECONDS) as connection:
                connection.sendall(block.data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass  # a source sends nothing; its EOF is the acknowledgement
        except OSError as error:
            reason = f"{error.strerror or error}; {len(block.ids)} dead letters were not marked as replayed"
            raise RunError.of("R618", address=f"{host}:{tcp_port}", reason=reason) from error


def _obstacle(letter: pb.DeadLetter, source: ReplaySource) -> str:
    """Return the reason why the message of a dead letter cannot be sent over TCP; empty if it can."""
    if source.framing not in (*KINDS, "worker"):
        return f'source "{source.name}" is of kind {source.framing}, which takes nothing over plain TCP'
    if source.framing not in KINDS:
        return f'only the decoder of source "{source.name}" knows the bytes around a message'
    if letter.encoding not in (PLAIN, FRAMED):
        return "its input is in the worker's own form"
    if not letter.input and letter.preview not in ("", "b''", "''", '""'):
        return "its input was too long to be kept"
    return misfit(source.framing, letter.input)


def _message(letter: StoredLetter, framing: str) -> bytes:
    """Return the message of a dead letter as the source received it, with its framing."""
    data = letter.record.input
    return data if letter.record.encoding == FRAMED or framing not in KINDS else framer(framing)(data)


def read_sources(directory: Path) -> dict[int, ReplaySource]:
    """Return the sources of the application whose dead letters are in a directory, by the port of the source."""
    path = directory / ATTACHMENT_FILE
    try:
        if (attachment := read_record(path, Attachment)) is not None:
            sources = attachment.config.get("sources", ())
            return {
                source["port"]: ReplaySource(source["name"], source["path"], source["framing"]) for source in sources
            }
        path, manifest = directory / MANIFEST, read_manifest(directory)
        sources = [source for pipeline in manifest.topology["pipelines"] for source in pipeline["sources"]]
        ports = manifest.ports.parts
        return {ports[source["path"]]: _source_of(source) for source in sources}
    except (KeyError, TypeError) as error:
        raise RunError.of("R698", what=path, reason=repr(error)) from error


def _source_of(source: Mapping[str, Any]) -> ReplaySource:
    kind = str(source["kind"])
    known = source["name"], source["path"], str(source["framing"]["kind"]) if kind == "tcp" else kind
    if kind != "kafka":
        return ReplaySource(*known)
    brokers, takes_records = tuple(source["brokers"]), source.get("content") == "record"
    return ReplaySource(*known, source["topic"], brokers, takes_records, source["options"])


def _obstacle_of_record(letter: pb.DeadLetter, source: ReplaySource) -> str:
    """Return the reason why the record of a dead letter cannot be written to its topic again; empty if it can."""
    if not letter.HasField("origin"):
        return "its record is not known"
    if letter.encoding != PLAIN:
        return "its input is in the worker's own form"
    if not letter.input:
        return "its record has no value, or one that was too long to be kept"
    if len(letter.origin.key) >= ORIGIN_KEY_BYTES and not source.takes_records:
        return "the key of its record was too long to be kept"
    return ""


def _record_of(letter: pb.DeadLetter, source: ReplaySource) -> KafkaRecord:
    """Return the Kafka record to send for a dead letter. It has headers only if the source takes whole records."""
    if not source.takes_records:
        return KafkaRecord(key=letter.origin.key or None, value=letter.input)
    record = whole_record(letter.input)
    return KafkaRecord(key=record.key, value=record.value, headers=tuple(record.headers))


def _listening(checkpoint: Path) -> dict[int, tuple[str, int]]:
    """Return the addresses of the sources of a running gateway; empty if no gateway runs."""
    try:
        status = json.loads((checkpoint / "gateway.json").read_bytes())
        if alive(status) is None:
            return {}
        return {source["port"]: (source["host"], source["tcp_port"]) for source in status.get("sources", ())}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damage(error, checkpoint / "gateway.json", repr(error)) from error


def read_marks(checkpoint: Path) -> Iterator[str]:
    """Yield the ids of the dead letters that a replay has marked as sent again."""
    try:
        with (checkpoint / FOLDER / MARKS).open(encoding="ascii") as file:
            # A line without its end was torn by a loss of power.
            yield from (line[:-1] for line in file if line.endswith("\n"))
    except FileNotFoundError:
        return


def replace_marks(checkpoint: Path, ids: Iterable[str]) -> None:
    """Mark only these letters as replayed, in place of all that were marked. The caller holds `letters_locked`."""
    content = "".join(f"{each}\n" for each in ids).encode("ascii")
    replace_file(checkpoint / FOLDER / MARKS, content, durable=True)


def mark(checkpoint: Path, ids: Sequence[str]) -> None:
    """Note in a file that letters were replayed, so that the next replay skips them. Notes survive a loss of power."""
    path = checkpoint / FOLDER / MARKS
    with open(path, "ab+", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)  # a loss of power may have cut the last line: it marks nothing
        file.write("".join(f"{each}\n" for each in ids).encode("ascii"))
    sync_file(path)


@contextmanager
def letters_locked(checkpoint: Path) -> Iterator[None]:
    """Hold a lock in the block, so that only one replay or prune of a checkpoint runs at a time.

    Raises:
        RunError: R610 if another replay or prune runs.
    """
    folder = checkpoint / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        lock = take_lock(folder, TRY)
    except BlockingIOError as error:
        raise RunError.of(
            "R610", what=f"checkpoint {checkpoint}", holder="another replay or prune", own="checkpoint"
        ) from error
    try:
        yield
    finally:
        os.close(lock)
