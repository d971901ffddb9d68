"""`wallaroo run APP --engine memory`: run an application in this process, without Spark, to try it out."""

import argparse
import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TextIO

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.case.record_input import RecordInput
from wallaroo_runtime.case.record_line import record_line
from wallaroo_runtime.console import breakpoint as debugger
from wallaroo_runtime.console.json_line import print_result, stdout_for_results
from wallaroo_runtime.console.reporter import JsonReporter, TextReporter
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.record import record_json
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.memory.server import MemoryServer
from wallaroo_runtime.memory.start import start
from wallaroo_runtime.program.application import check_runnable, unused_addresses
from wallaroo_runtime.run.signals import BROKEN_OFF, RunStop, stop_signals
from wallaroo_runtime.run.snapshot import Snapshot, listening
from wallaroo_runtime.spark.letter_watch import LetterWatch

NOTE = "note: --engine memory is for a first look: one process, nothing is kept, and nothing is recovered"
HINT = "write records to standard input, a line each: TOPIC KEY VALUE; topics that are read: {}"
UNFED = "no records came for: {}"
UNSENT = "results that were not sent, and are lost: {}"
PROGRESS_S = 1.0
LETTER_FIX = "correct the user code or the sender; dead letters are kept only on Spark"


@dataclass(slots=True)
class _Console:
    """The terminal, which a run shares with user code and with the debugger.

    Attributes:
        stopped: The flag that signals set.
        stdout: The stream for the records that sinks write.
        debugging: The handler of `breakpoint()`.
        records: The reader of records on standard input, which pauses while the debugger reads.
    """

    reporter: JsonReporter | TextReporter
    stopped: RunStop
    stdout: TextIO
    debugging: debugger.Debugging = field(init=False)
    records: RecordInput | None = None

    def alone(self) -> AbstractContextManager[object]:
        """Return a context in which the debugger alone reads standard input."""
        return self.records.paused() if self.records else nullcontext()


@contextmanager
def _console(reporter: JsonReporter | TextReporter, *, as_json: bool) -> Iterator[_Console]:
    with stop_signals() as stopped, stdout_for_results() as stdout:
        console = _Console(reporter, stopped, stdout)
        with debugger.breakpoints(stopped.is_set, console.alone, has_terminal=not as_json) as console.debugging:
            yield console


def run_in_memory(arguments: argparse.Namespace, app: str, reporter: JsonReporter | TextReporter) -> int:
    """Run an application until it is idle, or the user ends it by a signal or at a breakpoint.

    Returns:
        The exit code: 0; the code of a signal if it came before the application was initialized, or at a breakpoint;
        the code of SIGINT if the user left a breakpoint with `q`.

    Raises:
        RunError: The application cannot start, or it failed.
    """
    reporter.note(NOTE)
    with _console(reporter, as_json=arguments.json) as console:
        try:
            _run(arguments, app, console)
        except (KeyboardInterrupt, DiagnosticError) as error:
            if not (console.stopped.ended_start(error) or console.debugging.is_over):
                raise
            reporter.event("stopped", BROKEN_OFF)
            return console.stopped.exit_code
        return console.stopped.exit_code if console.debugging.is_over else 0


def _run(arguments: argparse.Namespace, app: str, console: _Console) -> None:
    reporter = console.reporter
    run = start(
        app,
        arguments.parts.app,
        check_persist=arguments.debug,
        on_error=arguments.on_error,
        inputs=arguments.inputs,
        outputs=arguments.outputs,
        tell=partial(reporter.doing, "starting", is_shared=True),
    )
    for finding in unused_addresses(run.topology, arguments.inputs, arguments.outputs):
        reporter.warn(finding)
    try:
        check_runnable(run.topology)
        asyncio.run(_serve(run, arguments.stop_when_idle, console, as_json=arguments.json))
    finally:
        run.close()


async def _serve(run: MemoryRun, idle_s: float | None, console: _Console, *, as_json: bool) -> None:
    reporter, stopped = console.reporter, console.stopped

    def show(record: KafkaRecord) -> None:
        values = {"topic": record.topic, **record_json(record)}
        print_result(values, record_line(record), as_json=as_json, stream=console.stdout)

    watch = LetterWatch()

    def bury(batch: Sequence[pb.DeadLetter]) -> None:
        if console.debugging.is_over:
            server.refuse()  # user code did not fail on these messages: the debugger interrupted it
            run.letter_count -= len(batch)
        else:
            watch.add([("", letter) for letter in batch], len(batch))
            for notable in watch.news():  # of each step and code: the first one, the 10th, the 100th, and so on
                reporter.warn(replace(notable.finding(""), pointer="", fix=LETTER_FIX))

    server = MemoryServer(run, reporter.warn, show, bury)
    run.now_ms = time.time_ns() // 1_000_000
    stopped.check()
    addresses = await server.start()
    stopped.begin()
    reporter.initialized(listening(run.topology, addresses), None)
    topics = [source.place for source in run.topology.kafka_sources()]
    records = console.records = RecordInput(reporter.warn) if topics else None
    if records is not None:
        reporter.note(HINT.format(", ".join(dict.fromkeys(topics))))
    reported_at = time.monotonic()
    while not stopped.is_set() and not server.is_over:
        await server.turn()
        if records is not None and _fed(server, records) and len(topics) == sum(1 for _ in run.topology.sources()):
            break
        now = time.monotonic()
        if now - reported_at >= PROGRESS_S:
            reported_at = now
            reporter.progress(_snapshot("running", run, server))
        if idle_s is not None and now - server.active_at >= idle_s:
            break
    await server.stop()
    _conclude(run, server, console)


def _conclude(run: MemoryRun, server: MemoryServer, console: _Console) -> None:
    """Report to the user how the run ended.

    Raises:
        RunError: The run failed; R741 if all messages became dead letters.
    """
    reporter = console.reporter
    if console.debugging.is_over:
        reporter.event("stopped", debugger.BROKEN_OFF)
        reporter.progress(_snapshot("stopped", run, server))
        return
    if server.failure is not None:
        raise server.failure
    if unfed := run.feed.unfed():
        reporter.note(UNFED.format(", ".join(unfed)))
    if unsent := server.unsent:
        reporter.note(UNSENT.format(", ".join(f'{count:,} of "{name}"' for name, count in unsent.items())))
    reporter.progress(_snapshot("stopped", run, server))
    if run.letter_count >= max(server.received, 1) and not server.emitted:
        finding = Diagnostic.of("R741", count=f"{server.received:,}", command="")
        raise RunError([replace(finding, fix=LETTER_FIX)])


def _fed(server: MemoryServer, records: RecordInput) -> bool:
    """Process the records that have arrived on standard input. Return whether the input has ended."""
    while not server.is_over and (step := records.take()) is not None:
        if isinstance(step, str):
            name, _, metadata = step.partition(" ")
            server.visit(name, metadata)
        else:
            server.produce(step)
    return records.is_over


def _snapshot(state: str, run: MemoryRun, server: MemoryServer) -> Snapshot:
    return Snapshot(
        state=state,
        messages_in=server.received,
        messages_processed=server.received,
        messages_out=server.emitted - sum(server.unsent.values()),
        dead_letters=run.letter_count,
        batches=run.batches,
        rate=server.received / (time.monotonic() - server.began),
        lag=0,
    )
