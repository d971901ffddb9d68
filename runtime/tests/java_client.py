"""Calls workers as Spark's tasks do: through the client in Java, in a process of its own, without Spark."""

import base64
import json
import re
import subprocess
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from wallaroo.message.handshake import CAPABILITIES, PROTOCOLS
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.spark.failure.translate import operator_error
from wallaroo_runtime.spark.machine.jar import operator_jar
from wallaroo_runtime.system.java import QUICK_JAVA
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.worker import discovery
from wallaroo_runtime.worker.spec import WorkerSpec

PACKAGE = "java/src/test/java/org/wallaroo/spark"
FLUSH_BYTES = 8 << 20
_OPERATOR = re.compile("wallaroo-operator:([A-Za-z0-9+/=]+):")


def started_java(main: str, directory: Path) -> "subprocess.Popen[str]":
    """Compile a program of the tests in Java, and start it.

    Args:
        main: Its class, within the package of the operators.
        directory: For what is compiled.
    """
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None
    path = f"{operator_jar()}:{Path(found.origin).parent / 'jars'}/*"
    source = Path(__file__).parents[1] / PACKAGE / f"{main.replace('.', '/')}.java"
    quick = QUICK_JAVA.split()
    subprocess.run(["javac", *(f"-J{option}" for option in quick), "-d", directory, "-cp", path, source], check=True)
    command = ["java", *quick, "-cp", f"{directory}:{path}", f"org.wallaroo.spark.{main}"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")


def asked(process: "subprocess.Popen[str]", request: Any) -> Any:
    """Return the answer to one line."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def ended(process: "subprocess.Popen[str]") -> None:
    """End a program that `started_java` has started."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    process.wait(60)


def text(data: bytes) -> str:
    """Return bytes as a request has them."""
    return base64.b64encode(data).decode()


def outputs_of(answer: dict[str, Any]) -> list[pb.Output]:
    """Return the outputs of an answer."""
    return [pb.Output(port=port, bucket=to, frame=base64.b64decode(frame)) for port, to, frame in answer["outputs"]]


@dataclass(slots=True)
class JavaClient:
    """The process; the calls of any number of workers.

    Raises (from every method): `RunError` when a worker cannot be had or broke the rules.
    """

    process: "subprocess.Popen[str]"
    numbers: Iterator[int] = field(default_factory=count)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        answer: dict[str, Any] = asked(self.process, request)
        if marked := _OPERATOR.search(answer.get("failure", "")):
            raise operator_error(json.loads(base64.b64decode(marked[1])))
        assert "error" not in answer, answer["error"]
        return answer

    def take_endings(self) -> dict[str, str]:
        """Return which processes of workers have ended by themselves since the last call, by place, in words."""
        return dict(self.ask(op="endings")["endings"])

    def log(self) -> list[str]:
        """Return all warnings of the operators."""
        return list(self.ask(op="log")["lines"])


@dataclass(slots=True)
class JavaChannel:
    """The way to one worker."""

    java: JavaClient
    spec: WorkerSpec
    owner: ProcessId
    sampled_below: int = 0

    def connection(self) -> discovery.ServingWorker:
        """Return the process of the worker that serves."""
        return discovery.ensure_worker(self.spec, self.owner)

    def open(self, opening: pb.Opening, *, has_state: bool) -> str:
        """Begin what a task does; returns its number."""
        session = str(next(self.java.numbers))
        init = pb.InitRequest(
            protocol_min=PROTOCOLS[0], protocol_max=PROTOCOLS[1], capabilities=CAPABILITIES,
            interface_hash=self.spec.interface_hash,
        )  # fmt: skip
        settings = {
            "worker": self.spec.name,
            "worker_directory": str(self.connection().directory),
            "start": {},
            "deadline_ms": self.spec.deadline_ms,
            "init": text(init.SerializeToString()),
            "flush_bytes": FLUSH_BYTES,
            "sampled_below": self.sampled_below - (self.sampled_below >> 63 << 64),
            "opening": text(opening.SerializeToString()),
            "has_state": has_state,
        }
        self.java.ask(op="open", session=session, settings=settings)
        return session

    def data(self, opening: pb.Opening, inputs: Iterable[bytes], ahead: int = 4) -> Iterator[list[pb.Output]]:
        """Yield the outputs of each input, of which so many are under way."""
        session, waiting = self.open(opening, has_state=False), deque[None]()
        try:
            for frames in inputs:
                self.java.ask(op="send", session=session, frames=text(frames))
                waiting.append(None)
                if len(waiting) >= ahead:
                    waiting.popleft()
                    yield outputs_of(self.java.ask(op="receive", session=session))
            for _ in waiting:
                yield outputs_of(self.java.ask(op="receive", session=session))
        finally:
            self.java.ask(op="close", session=session)


@dataclass(frozen=True, slots=True)
class BucketResult:
    """What one bucket call gave.

    Attributes:
        counter: Of the version of the bucket's state after the call.
        nonce: The same.
        outputs: In the order in which they were made.
        changes: Entries for the bucket's log.
        is_whole: Whether the changes replace the log.
        keys: How many keys the bucket has now.
        reads: How many times the worker asked for the log.
    """

    counter: int
    nonce: int
    outputs: list[pb.Output]
    changes: list[bytes]
    is_whole: bool
    keys: int
    reads: int


class JavaBuckets:
    """The bucket calls of one task, and one bucket's log as Spark would keep it."""

    def __init__(self, channel: JavaChannel, opening: pb.Opening, bucket: int) -> None:
        self.channel, self.bucket = channel, bucket
        self.counter = self.nonce = 0
        self.log: list[bytes] = []
        self._session = channel.open(opening, has_state=True)

    def run(self, frames: Sequence[bytes], *, wants_snapshot: bool = False) -> BucketResult:
        """Run a call, of which nothing is kept."""
        answer = self.channel.java.ask(
            op="bucket", session=self._session, bucket=self.bucket, counter=self.counter, nonce=self.nonce,
            frames=[text(frame) for frame in frames], log=[text(entry) for entry in self.log],
            wants_snapshot=wants_snapshot,
        )  # fmt: skip
        answer["changes"] = [base64.b64decode(entry) for entry in answer["changes"]]
        return BucketResult(**{**answer, "outputs": outputs_of(answer)})

    def commit(self, result: BucketResult) -> BucketResult:
        """Keep what a call has changed."""
        self.log = result.changes if result.is_whole else self.log + result.changes
        self.counter, self.nonce = result.counter, result.nonce
        return result

    def close(self) -> None:
        """End the streams."""
        self.channel.java.ask(op="close", session=self._session)
