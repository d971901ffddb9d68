"""A worker without any SDK, written from SPECIFICATION.md: what a third language would have to do.

It hosts one fixed application: messages are text after a big-endian 32-bit length; words are counted by their first
letter; each word gives a line `word => count nonce`, where nonce is random and added up in the state, so that a copy
of the state that was not committed shows. Words that a test reserves: `!raise` fails, `!hang` never returns.
The arguments change how it starts: `fail-setup`, `exit`, `never-listen`, `print`. For a query that is named like a
fault it breaks one rule in what it answers (`wrong_reply.py`). With `trip FILE` it holds up, once FILE exists, all
calls of states but one: FILE is then FILE.reached, until a test removes it.
"""

import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent import futures
from itertools import chain
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from wrong_reply import PRIVATE, WRONG

from wallaroo.message.frame import DEAD_LETTER_PORT, PLAIN, encode_frame, read_frame, split_frames
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.rpc import WORKER_SERVICE, add_service

MAX_BYTES = 65 * 1024 * 1024
ARGS = json.loads(os.environ.get("WALLAROO_ARGS", "[]"))
DIRECTORY = Path(os.environ["WALLAROO_WORKER_DIR"])
HASH = "sha256:" + "0" * 64

Message = tuple[int, str]  # sequence, text


def bucket_of(key: bytes, count: int) -> int:
    """Return the bucket of a key, as the specification says."""
    return ((zlib.crc32(key) * 0x9E3779B1) % 2**32) * count >> 32


def decoded(frames: bytes) -> Iterator[Message]:
    """Cut the framed messages of journal frames; messages of Spark's sources stand there as they are."""
    for header, start, _ in split_frames(frames):
        frame = read_frame(frames, start)
        if header.encoding == PLAIN:
            texts = (value.decode() for value in frame.values())
            yield from ((frame.sequence_of(number), text) for number, text in enumerate(texts))
            continue
        data = frame.data
        at = 0
        for number in range(header.count):
            size = int.from_bytes(data[at : at + 4], "big")
            yield header.sequence + number, data[at + 4 : at + 4 + size].decode()
            at += 4 + size


class Trip:
    """Holds up calls, once and while a test has asked for it, when one of them has filed its bucket."""

    def __init__(self) -> None:
        self._path = Path(ARGS[1]) if ARGS[:1] == ["trip"] else None
        self._lock, self._begun, self._filed = threading.Lock(), 0, threading.Event()

    def begin(self) -> None:
        """Go on with the first call; rename the file when that is done, and hold the others up until it is gone."""
        if self._path is None or not self._path.exists():
            return
        with self._lock:
            self._begun += 1
            if self._begun == 1:
                return
        self._filed.wait(60)
        reached = self._path.with_suffix(".reached")
        with contextlib.suppress(FileNotFoundError):
            self._path.rename(reached)
        while reached.exists():
            time.sleep(0.01)

    def filed(self) -> None:
        """Take note that a call has filed its bucket, which counts once there is something to hold up."""
        if self._begun:
            self._filed.set()


class Bucket:
    """Live state of one bucket, with the version that it belongs to."""

    def __init__(self, version: tuple[int, int]) -> None:
        self.version = version
        self.counts: dict[str, dict[str, int]] = {}
        self.sums: dict[str, int] = {}

    def load(self, entries: list[bytes]) -> None:
        """Read a log."""
        for entry in entries:
            frame = read_frame(entry)
            for index, value in zip(frame.key_indexes, frame.values(), strict=True):
                self.counts[frame.keys[index].decode()] = json.loads(value)

    def entry(self, keys: list[str], port: int) -> bytes:
        """Write the states of keys as one log entry."""
        values = [json.dumps(self.counts[key]).encode() for key in keys]
        names = [key.encode() for key in keys]
        return encode_frame(values, port=port, encoding=PRIVATE, keys=names, key_indexes=range(len(keys)))


class PlainWorker:
    """The service."""

    def __init__(self) -> None:
        self.buckets: dict[tuple[str, str, int], Bucket] = {}
        self.trip = Trip()
        self.calls = 0

    def Init(self, request, context):  # noqa: N802
        """Shake hands."""
        reply = pb.InitReply(
            protocol_min=2 if "protocol-2" in ARGS else 1,
            protocol_max=3,
            capabilities=["of the future", "split_frames", *(["windows"] if "windows" in ARGS else [])],
            language="plain",
            interface_hash=request.interface_hash if "any-hash" in ARGS else HASH,
            process_id=os.getpid(),
        )
        reply.endpoints.append(f"unix:{DIRECTORY / 'worker.sock'}")
        return reply

    def Process(self, requests, context):  # noqa: N802
        """Split texts into words; with a KEY exit by bucket, else straight to the sink."""
        opening = next(requests).opening
        last = opening.stage.nodes[-1]
        note = noting(opening.in_flight) if "pwrite" in ARGS else lambda *_: None
        for request in requests:
            words, letters = self._split(request.data, last.path, note)
            note(request.data.index, 0)
            if last.kind == pb.NODE_KIND_KEY:
                yield from self._keyed(request.data.index, words, last.port, opening.stage.bucket_count)
            elif words:
                frame = encode_frame([f"{word}\n".encode() for _, word in words], port=last.port, **sequences(words))
                output = pb.Output(index=request.data.index, port=last.port, bucket=-1, frame=frame)
                yield pb.Reply(output=output)
            if letters:
                frame = encode_frame([text for _, text in letters], port=DEAD_LETTER_PORT, **sequences(letters))
                output = pb.Output(index=request.data.index, port=DEAD_LETTER_PORT, bucket=-1, frame=frame)
                yield pb.Reply(output=output)
            entered = sum(1 for _ in decoded(request.data.frames))
            counts = counted(opening.stage.nodes, entered, len(words) + len(letters), len(letters))
            yield pb.Reply(done=pb.Done(index=request.data.index, counts=counts))

    def SplitFrames(self, request, context):  # noqa: N802
        """Cut at line ends: what is before the first one is a message; `!refuse` is refused."""
        if request.data.startswith(b"!refuse"):
            failure = pb.Failure(code="C501", message="Lines: told to", traceback='File "app.py", line 2')
            return pb.SplitReply(failure=failure)
        lengths = [len(line) + 1 for line in request.data.split(b"\n")[:-1]]
        return pb.SplitReply(lengths=lengths, wanted_bytes=0)

    def _split(self, data, path, note):
        words, letters = [], []
        skips = {skip.ordinal: skip for skip in data.skips}
        for ordinal, (sequence, text) in enumerate(decoded(data.frames)):
            if skip := skips.get(ordinal):
                letters.append((sequence, pb.DeadLetter(code=skip.code, error=skip.reason).SerializeToString()))
                continue
            note(data.index, 1 + ordinal)
            for word in text.split():
                if word == "!raise":
                    letter = pb.DeadLetter(code="C501", path=path, step="Split", error="told to", sequence=sequence)
                    letter.traceback = 'File "app.py", line 1'
                    letters.append((sequence, letter.SerializeToString()))
                elif word == "!hang":
                    threading.Event().wait()
                elif word == "!exit":
                    os._exit(7)
                else:
                    words.append((sequence, word))
        return words, letters

    @staticmethod
    def _keyed(index, words, port, bucket_count):
        buckets: dict[int, list[Message]] = {}
        for message in words:
            buckets.setdefault(bucket_of(message[1][:1].encode(), bucket_count), []).append(message)
        for bucket, messages in buckets.items():
            values = [word.encode() for _, word in messages]
            keys = sorted({word[:1] for word in values})
            indexes = [keys.index(word[:1]) for word in values]
            frame = encode_frame(
                values, port=port, encoding=PRIVATE, keys=keys, key_indexes=indexes, **sequences(messages)
            )
            yield pb.Reply(output=pb.Output(index=index, port=port, bucket=bucket, frame=frame))

    def ProcessState(self, requests, context):  # noqa: N802
        """Count words."""
        opening = next(requests).opening
        entry, exit_port = opening.stage.nodes[0], opening.stage.nodes[-1].port
        for request in requests:
            self.trip.begin()
            call, frames = request.bucket, [request.bucket.frames]
            while request.bucket.more:
                request = next(requests)
                frames.append(request.bucket.frames)
            name = (opening.query, opening.stage.id, call.bucket)
            version = (call.version.counter, call.version.nonce)
            live = self.buckets.pop(name, None)
            if version == (0, 0):
                live = Bucket(version)
            elif live is None or live.version != version:
                live = Bucket(version)
                yield pb.Reply(need_state=pb.NeedState(index=call.index))
                live.load([entry for log in logs_of(requests) for entry in log.entries])
            lines, changed = self._count(live, b"".join(frames))
            if lines:
                frame = encode_frame([line for _, line in lines], port=exit_port, **sequences(lines))
                yield pb.Reply(output=pb.Output(index=call.index, port=exit_port, bucket=-1, frame=frame))
            keys = sorted(live.counts) if call.wants_snapshot else sorted(changed)
            if keys:
                change = pb.StateChange(index=call.index, entries=[live.entry(keys, entry.state_port)])
                yield pb.Reply(change=change)
            live.version = (call.version.counter + 1, random.getrandbits(63) + 1)
            self.buckets[name] = live
            self.trip.filed()
            done = pb.Done(index=call.index, nonce=live.version[1], snapshot=call.wants_snapshot)
            done.keys = len(live.counts)
            done.counts.extend(counted(opening.stage.nodes, len(lines), len(lines), 0))
            yield pb.Reply(done=done)

    @staticmethod
    def _count(live, frames):
        lines, changed = [], set()
        for _, start, _ in split_frames(frames):
            frame = read_frame(frames, start)
            for number, value in enumerate(frame.values()):
                word = value.decode()
                state = live.counts.setdefault(word[:1], {})
                state[word] = state.get(word, 0) + 1
                state["#"] = state.get("#", 0) + random.randrange(1, 1000)
                changed.add(word[:1])
                lines.append((frame.sequence_of(number), f"{word} => {state[word]} {state['#']}\n".encode()))
        return lines, changed


def logs_of(requests):
    """Return the parts of the log that the next requests have."""
    found = [next(requests).log]
    while found[-1].more:
        found.append(next(requests).log)
    return found


def noting(path):
    """Return what notes call and message in the in-flight file of a stream, without mapping it."""
    file = os.open(path, os.O_RDWR)
    os.pwrite(file, os.getpid().to_bytes(8, "little"), 16)
    return lambda call, message: os.pwrite(file, call.to_bytes(8, "little") + message.to_bytes(8, "little"), 0)


def counted(nodes, entered, made, dead):
    """Return what went in and out of a chain of nodes, of which the one before the exit makes the messages."""
    counts = []
    for number, node in enumerate(nodes):
        if number + 1 < len(nodes):
            out = made if number + 2 == len(nodes) else entered
            counts.append(pb.StepCount(path=node.path, messages_in=entered, messages_out=out))
        elif node.kind == pb.NODE_KIND_KEY:
            counts.append(pb.StepCount(path=node.path, dead_letters=dead))
        else:
            counts.append(pb.StepCount(path=node.path, messages_in=made, messages_out=made - dead, dead_letters=dead))
    return counts


def through_fault(method):
    """Wrap a method of the service, so that its replies pass the fault that the query is named like."""

    def run(self, requests, context):
        first = next(requests)
        fault = WRONG.get(first.opening.query)
        for reply in method(self, chain([first], requests), context):
            if fault is not None:
                fault(reply)
            yield reply

    return run


PlainWorker.Process, PlainWorker.ProcessState = map(through_fault, (PlainWorker.Process, PlainWorker.ProcessState))


def sequences(messages):
    """Return the sequence arguments of a frame of these messages."""
    first = min(sequence for sequence, _ in messages)
    return {"sequence": first, "sequences": [sequence - first for sequence, _ in messages]}


def main() -> None:
    """Serve until told to stop."""
    if "fail-setup" in ARGS:
        finding = {
            "code": "T217",
            "message": "setup raised ValueError: no",
            "fix": "correct it",
            "file": "a.py",
            "line": 3,
        }
        (DIRECTORY / "failure.json").write_text(json.dumps({"diagnostics": [finding]}))
        sys.exit(3)
    if "exit" in ARGS:
        print("cannot find my things", flush=True)
        sys.exit(7)
    if "never-listen" in ARGS:
        threading.Event().wait()
    options = (("grpc.max_send_message_length", MAX_BYTES), ("grpc.max_receive_message_length", MAX_BYTES))
    server = grpc.server(futures.ThreadPoolExecutor(16), options=options)
    add_service(WORKER_SERVICE, PlainWorker(), server)
    serving = health.HealthServicer()
    serving.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(serving, server)
    server.add_insecure_port(f"unix:{DIRECTORY / 'starting.sock'}")
    server.start()
    (DIRECTORY / "starting.sock").rename(DIRECTORY / "worker.sock")
    if "print" in ARGS:
        threading.Thread(target=lambda: [print("x" * 1000) for _ in range(1_000_000)], daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: server.stop(1))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
