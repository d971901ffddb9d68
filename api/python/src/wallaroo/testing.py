"""Runs an application in the process of a test, without Spark: send messages, read outputs, states and dead letters.

The engine is part of the package `wallaroo-spark-runtime`. It runs the stages that Spark would run, with the same
frames and checks. It does not have Spark's several processes, failures and recovery.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from numbers import Real
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, check_arguments
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.message.memory_message import DeadLetter, Message, Record

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

    A Python program runs in this process, so that a debugger stops in it. A program in another language runs in its
    own process. No source listens, and no sink sends over the network.

    Args:
        app: A setup function; or, as for `wallaroo run`, a Python file or module, a Go package directory, a worker
            binary, or a topology file.
        args: The application's command-line arguments, e.g. `["--in", ":7010", "--out", ":7002"]`.
        check_persist: Whether to look for lost and accidental changes of states. A message is a dead letter (C510) if
            its computation changes the state and returns `persist` False. A call fails (C530) if a later step changes
            the state through a message that shares objects with it.
        on_error: `dead_letter` or `fail`, which overrides the application; empty keeps the application's choice.

    Returns:
        The running application. Use it in a `with` statement, or close it.

    Raises:
        DiagnosticError: The application cannot be run; the error lists all findings. R728 if `wallaroo-spark-runtime`
            is missing.

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
        raise DiagnosticError(Diagnostic.wrong("run", "app", app, "a setup function, or the path of a program"))
    check_arguments("run", args)
    try:
        from wallaroo_runtime.memory import start
    except ModuleNotFoundError as err:
        package, install = "wallaroo-spark-runtime", "-e ./runtime, in a checkout, or its wheel"
        finding = Diagnostic.no_package("wallaroo.testing", package, err, install)
        raise DiagnosticError(finding) from err
    program = fspath(app) if isinstance(app, PathLike) else app
    return Run(start(program, args, check_persist=check_persist, on_error=on_error))


class Run:
    """A running application; `run` starts it.

    The methods `send`, `produce`, `visit`, `generate` and `advance` run micro-batches. The effects are visible when the
    call returns. If a micro-batch fails, the call raises an error and has no effects. Equal calls have equal results in
    each run.

    Args:
        engine: The engine that runs the application.

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
        """Process a list of messages as one micro-batch.

        Args:
            messages: Payloads as bytes, which the source's decoder reads, or objects, which replace the decoder's
                results. If only the decoder knows the framing, a payload includes its header; otherwise it does not.
                Payloads and objects may be in a `Message` with key and time. A row without a time gets the time in the
                column that its source names as `timestamp`; if `timestamp` is other SQL than a name, the row needs a
                time. Other messages without a time get the time of the application's clock (`now_ms`). A source with
                content "record" takes a `KafkaRecord`, where topic, time, partition and offset may be left out, or
                bytes as the value of a record.
            source: Name of the source, or its position from "0"; empty for the only source.

        Raises:
            DiagnosticError: R720 if there is no such source; R721 if it does not take such a message; R611 if a dead
                letter stops the application; or an error of a worker.
        """
        self._engine.send(messages, source)

    def produce(self, records: Iterable[KafkaRecord] | KafkaRecord) -> None:
        """Write records to topics. The sources of these topics get the records in one micro-batch.

        If sinks write records to topics that sources read, further micro-batches follow until there are no new records.
        In this way groups of `wallaroo.goka` get the records of their loops and of the tables that they join. The same
        happens after `send`.

        Args:
            records: Records with topic, key and value; partition, offset and time may be left out.

        Raises:
            DiagnosticError: As for `send`; R720 if a topic is misspelt.
        """
        self._engine.produce(records)

    def topic(self, name: str) -> list[KafkaRecord]:
        """Return the records that `produce` and sinks have written to a topic, in order.

        Raises:
            DiagnosticError: R720 if the application has no such topic.
        """
        return self._engine.topic(name)

    def visit(self, name: str, metadata: bytes | str = b"") -> int:
        """Run the visitors of a visit for every key that has state, as `wallaroo visit` does.

        Args:
            name: Name of the visit.
            metadata: Passed to the visitors; a text is passed as UTF-8.

        Returns:
            The number of keys for which a visitor ran; dead letters are included.

        Raises:
            DiagnosticError: As `send`; R720 if no step takes the visit; R733 if the metadata are neither bytes nor
                text.
        """
        return int(self._engine.visit(name, metadata))

    def generate(self, most: int | None = None, source: str = "") -> int:
        """Process the next messages of a generator.

        Args:
            most: Greatest number of messages; None for all until the generator ends.
            source: As for `send`.

        Returns:
            The number of messages.

        Raises:
            DiagnosticError: As `send`; R670 if the generator fails.
        """
        return self._engine.generate(most, source)

    def advance(self, time: float | timedelta) -> None:
        """Let time pass: windows that have ended emit their output, timers that are due run, and states expire.

        The clock begins at the same time in each run, and only this call moves it. States and windows get a tick at the
        old time, at most about 1000 ticks on the way, and a tick at the new time. The last tick is repeated as long as
        it runs timers, because a timer's callback may set a timer for a time that has passed.

        Args:
            time: Time to add, in seconds.

        Raises:
            DiagnosticError: As `send`; T207 if time would go back, R721 if a timer sets itself to such a time again
                and again.
        """
        seconds = time.total_seconds() if isinstance(time, timedelta) else time
        if isinstance(seconds, bool) or not isinstance(seconds, Real) or not math.isfinite(seconds):
            raise DiagnosticError(Diagnostic.wrong("advance", "time", time, "seconds, a finite number or a timedelta"))
        self._engine.advance(round(seconds * 1000))

    @property
    def now_ms(self) -> int:
        """The application's clock, in milliseconds since 1970."""
        return self._engine.now_ms

    def output(self, sink: str = "") -> list[bytes]:
        """Return the bytes that a sink has received: one item per message, the result of the encoder.

        Messages of one micro-batch are in the order of the messages from which they derive. On Spark, this holds
        only for messages of one key.

        Args:
            sink: Name of the sink, or its position from "0"; empty for the only sink.

        Raises:
            DiagnosticError: R720 if there is no such sink.
        """
        return [record.value or b"" for record in self._engine.records(sink)]

    def records(self, sink: str = "") -> list[Record]:
        """Return the records that a sink of Kafka or Spark has received; argument and order are as for `output`."""
        return self._engine.records(sink)

    def kafka_records(self, sink: str = "") -> list[KafkaRecord]:
        """Return the records that a sink with content "record" has received; argument and order are as for `output`."""
        return self._engine.kafka_records(sink)

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The messages on which user code failed."""
        return list(self._engine.letters)

    def clear(self) -> None:
        """Remove the outputs and dead letters of past calls, but keep states and windows."""
        self._engine.take()

    def state(self, name: str, key: Any = b"") -> Any:
        """Return a copy of the committed state of a key.

        Args:
            name: Name of the state; for a window, the name of its aggregation.
            key: Key as the partition function returns it; not needed if there is only one state.

        Returns:
            The state's object. For a window a list of accumulators, oldest first: one for each open part of a window
            that is aggregated separately. For a group of `wallaroo.goka`, or of Goka in Go, a
            `wallaroo.goka.GroupState`. For other languages bytes. None if the key has no state.

        Raises:
            DiagnosticError: R720 if there is no such state.
        """
        return self._engine.state(name, key)

    def states(self, name: str) -> dict[str | bytes, Any]:
        """Return the states with this name of all keys, by key. Values and errors are as for `state`."""
        return self._engine.states(name)

    def close(self) -> None:
        """End the application. Its results can still be read."""
        self._engine.close()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
