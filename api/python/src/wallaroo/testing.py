"""Runs an application in the process of a test: messages in, outputs, states and dead letters out; no Spark.

The engine is that of the package `wallaroo-spark-runtime`. It runs the stages that Spark would run, with the same
frames and the same checks; what is Spark's own (several processes, failures, recovery) is not there.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from numbers import Real
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, shown
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.message.kit import DeadLetter, Message, Record

if TYPE_CHECKING:
    from wallaroo_runtime.memory import MemoryRun

__all__ = ["DeadLetter", "Message", "Record", "Run", "run"]


def run(
    app: str | PathLike[str] | Callable[..., Any],
    args: Sequence[str] = (),
    *,
    check_persist: bool = False,
    on_error: str = "",
) -> "Run":
    """Start an application in this process.

    A program in Python runs in this process, so that a debugger stops in it; a program in another language is a process
    of its own. Nothing listens, and nothing is sent over the network.

    Args:
        app: A setup function; or, as for `wallaroo run`, a Python file or module, a Go package directory, a worker
            binary, or a topology file.
        args: What the application sees on its command line, e.g. `["--in", ":7010", "--out", ":7002"]`.
        check_persist: Whether a change of state that the computation does not ask to persist makes a dead letter.
        on_error: `dead_letter` or `fail`, before what the application says; empty: it decides.

    Returns:
        The running application; use it in a `with`, or close it.

    Raises:
        DiagnosticError: It cannot be run: every finding. R728: `wallaroo-spark-runtime` is not installed.

    Example:
        >>> import collections, wallaroo
        >>> def application_setup(args):
        ...     lines = wallaroo.TCPSourceConfig("127.0.0.1", 7010, wallaroo.Decoder(bytes.decode, 4, ">I"))
        ...     out = wallaroo.TCPSinkConfig("127.0.0.1", 7002, wallaroo.Encoder(str.encode))
        ...     upper = wallaroo.Computation(str.upper, "upper")
        ...     return wallaroo.build_application("Upper", wallaroo.source("lines", lines).to(upper).to_sink(out))
        >>> with run(application_setup) as app:
        ...     app.send([b"hello", b"world"])
        ...     app.output()
        [b'HELLO', b'WORLD']
    """
    if not isinstance(app, (str, PathLike)) and not callable(app):
        raise DiagnosticError([_finding("run", "app", app, "a setup function, or the path of a program")])
    try:
        from wallaroo_runtime.memory import start
    except ModuleNotFoundError as err:
        package = "wallaroo-spark-runtime"
        finding = Diagnostic.of("R728", what="wallaroo.testing", package=package, error=err, install=package)
        raise DiagnosticError([finding]) from err
    program = fspath(app) if isinstance(app, PathLike) else app
    return Run(start(program, args, check_persist=check_persist, on_error=on_error))


class Run:
    """A running application; `run` starts it.

    Each call of `send`, `generate` and `advance` is one micro-batch, whose effects are there when it returns. When it
    raises an error, nothing of it counts. Results are the same each time.

    Args:
        engine: What runs it.

    Example:
        >>> import wallaroo
        >>> def application_setup(args):
        ...     numbers = wallaroo.TCPSourceConfig("127.0.0.1", 7010, wallaroo.Decoder(int, 4, ">I"))
        ...     out = wallaroo.TCPSinkConfig("127.0.0.1", 7002, wallaroo.Encoder(lambda number: b"%d" % number))
        ...     half = wallaroo.Computation(lambda number: 10 // number, "divide")
        ...     return wallaroo.build_application("Ten", wallaroo.source("numbers", numbers).to(half).to_sink(out))
        >>> with run(application_setup) as app:
        ...     assert isinstance(app, Run)
        ...     app.send([b"5", b"0", 2])  # bytes are decoded, other objects are messages already
        ...     app.output(), [(letter.step, letter.error) for letter in app.dead_letters]
        ([b'2', b'5'], [('divide', 'ZeroDivisionError: integer division or modulo by zero')])
    """

    def __init__(self, engine: "MemoryRun") -> None:
        self._engine = engine

    def send(self, messages: Iterable[Any], source: str = "") -> None:
        """Process messages.

        Args:
            messages: Payloads as bytes, which the source's decoder reads: without the length before each, unless only
                the decoder knows how long one is. Or objects, in place of what the decoder would return. Or either in a
                `Message`, with a key and a time; a row has that of the column that the source's `timestamp` names. To a
                source with content "record" a `KafkaRecord`, whose topic, time,
                partition and offset may be left out; bytes are the value of one.
            source: Its name, or its position from "0"; empty: the only one.

        Raises:
            DiagnosticError: R720, there is no such source; R721, it does not take such a message; R611, a dead letter
                stops the application; or what a worker reports.
        """
        self._engine.send(messages, source)

    def produce(self, records: Iterable[KafkaRecord] | KafkaRecord) -> None:
        """Write records to topics; the sources of these topics get them, all in one micro-batch.

        What sinks write to topics that sources read is the next micro-batch, and so on until all is quiet: groups of
        `wallaroo.goka` have their loops and join each other's tables. `send` goes on likewise.

        Args:
            records: With topic, key and value; partition, offset and time may be left out.

        Raises:
            DiagnosticError: As `send`; R720, a topic is misspelt. Nothing of the micro-batch that fails counts.
        """
        self._engine.produce(records)

    def topic(self, name: str) -> list[KafkaRecord]:
        """Return the records that `produce` and sinks have written to a topic, in order.

        Raises:
            DiagnosticError: R720, the application has no such topic.
        """
        return self._engine.topic(name)

    def visit(self, name: str, metadata: bytes | str = b"") -> int:
        """Run the visitors of a visit for every key that has state, as `wallaroo visit` does.

        Args:
            name: Of the visit.
            metadata: What the visitors get, too; a text as its bytes in UTF-8.

        Returns:
            For how many keys a visitor ran, dead letters among them.

        Raises:
            DiagnosticError: As `send`; R720, no step takes the visit; R733, the metadata are neither bytes nor a text.
        """
        return int(self._engine.visit(name, metadata).keys)

    def generate(self, most: int | None = None, source: str = "") -> int:
        """Process the next messages of a generator.

        Args:
            most: How many at most; None: all until it ends.
            source: As for `send`.

        Returns:
            How many there were.

        Raises:
            DiagnosticError: As `send`; R670, the generator fails.
        """
        return self._engine.generate(most, source)

    def advance(self, time: float | timedelta) -> None:
        """Let time pass: windows that are over then give their output, timers that are due run, and states expire.

        The clock begins at the same moment in each run, and only this moves it. States and windows get a tick before,
        those that a gateway would send meanwhile, at most 1000 of them, and one at the end, which is repeated while
        timers run: those that a timer sets for times that are over by then.

        Args:
            time: In seconds.

        Raises:
            DiagnosticError: As `send`; T207, time cannot go back.
        """
        seconds = time.total_seconds() if isinstance(time, timedelta) else time
        if isinstance(seconds, bool) or not isinstance(seconds, Real) or not math.isfinite(seconds):
            raise DiagnosticError([_finding("advance", "time", time, "seconds, a finite number or a timedelta")])
        self._engine.advance(round(seconds * 1000))

    @property
    def now_ms(self) -> int:
        """The application's clock, in milliseconds since 1970."""
        return self._engine.now_ms

    def output(self, sink: str = "") -> list[bytes]:
        """Return the bytes that a sink has got, each message as its encoder returned it.

        Those of one micro-batch have the order of the messages that they derive from. On Spark that holds for messages
        of one key only.

        Args:
            sink: Its name, or its position from "0"; empty: the only one.

        Raises:
            DiagnosticError: R720, there is no such sink.
        """
        return [record.value or b"" for record in self._engine.records(sink)]

    def records(self, sink: str = "") -> list[Record]:
        """Return the records that a sink of Kafka or Spark has got; otherwise as `output`."""
        return self._engine.records(sink)

    def kafka_records(self, sink: str = "") -> list[KafkaRecord]:
        """Return the records that a sink with content "record" has got; otherwise as `output`."""
        return self._engine.kafka_records(sink)

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The messages on which user code failed."""
        return list(self._engine.letters)

    def clear(self) -> None:
        """Forget outputs and dead letters; states and windows stay."""
        self._engine.take()

    def state(self, name: str, key: Any = b"") -> Any:
        """Return the state of a key as it was saved: a copy.

        Args:
            name: Of the state; of a window that of its aggregation.
            key: As the partition function returns it; none where there is one state only.

        Returns:
            The object; of a window the accumulators of its open parts, oldest first; of a group of `wallaroo.goka`,
            or of Goka in Go, a `wallaroo.goka.GroupState`; of other languages bytes. None: the key has no state.

        Raises:
            DiagnosticError: R720, there is no such state.
        """
        return self._engine.state(name, key)

    def states(self, name: str) -> dict[str | bytes, Any]:
        """Return the states of all keys; otherwise as `state`."""
        return self._engine.states(name)

    def close(self) -> None:
        """End the application; its results can still be read."""
        self._engine.close()

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _finding(method: str, parameter: str, actual: object, expected: str) -> Diagnostic:
    return Diagnostic.of(
        "T207", method=method, parameter=parameter, actual=shown(actual), expected=expected, fix=f"pass {expected}"
    )
