"""`wallaroo run APP --engine memory`: a first look, in this process."""

import argparse
import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from wallaroo.diagnostic import Diagnostic
from wallaroo.kafka_record import KafkaRecord
from wallaroo.testing import DeadLetter
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.checkpoint.manifest import REALTIME
from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.cli.record_input import RecordInput
from wallaroo_runtime.cli.record_line import record_line
from wallaroo_runtime.cli.stamp import print_json
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.record import Record
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.memory.server import MemoryServer
from wallaroo_runtime.memory.start import start
from wallaroo_runtime.program.application import check_runnable, unused_addresses
from wallaroo_runtime.run.signals import BROKEN_OFF, RunStop, stop_signals
from wallaroo_runtime.run.snapshot import Reporter, Snapshot, listening
from wallaroo_runtime.spark.letter_watch import LetterWatch
from wallaroo_runtime.topology.model import has_records

NOTE = "note: --engine memory is for a first look: one process, nothing is kept, and nothing is recovered"
HINT = "write records to standard input, a line each: TOPIC KEY VALUE; topics that are read: {}"
UNFED = "no records came for: {}"
# Options that mean something on Spark alone, as argparse has them.
ONLY_SPARK = (
    "checkpoint",
    "fresh",
    "continue_goka",
    "topic_reset",
    "pin_code",
    "conf",
    "worker_python",
    "kafka_jars",
    "gateway",
    "egress",
    "attach",
    "monitor",
)
PROGRESS_S = 1.0
LETTER_FIX = "correct the user code or the sender; dead letters are kept only on Spark"


class Letters:
    """Reports the first dead letter of each step and code, and again at each power of ten.

    Args:
        warn: Reports a finding.
    """

    def __init__(self, warn: Callable[[Diagnostic], None]) -> None:
        self._warn, self._watch = warn, LetterWatch()

    def tell(self, letters: Sequence[DeadLetter]) -> None:
        """Report those of a micro-batch."""
        found = [
            pb.DeadLetter(step=each.step, path=each.step, code=each.code, error=each.error, traceback=each.traceback)
            for each in letters
        ]
        self._watch.add([("", letter) for letter in found], len(found))
        for notable in self._watch.news():
            self._warn(replace(notable.finding(""), pointer="", fix=LETTER_FIX))


def run_in_memory(arguments: argparse.Namespace, app: str, reporter: Reporter) -> int:
    """Run an application until it is stopped by a signal, or idle.

    Returns:
        The exit code: 0, or that of a signal that came before the application was initialized.

    Raises:
        RunError: R608, an option means nothing here; else it cannot start, or it failed.
    """
    given = ["--" + name.replace("_", "-") for name in ONLY_SPARK if getattr(arguments, name)]
    given += [f"--mode {REALTIME}"] if arguments.mode == REALTIME else []
    for option in given:
        reason = f"{option} means nothing with --engine memory"
        raise wrong_usage(reason=reason, fix=f"leave out {option}, or --engine memory")
    reporter.note(NOTE)
    with stop_signals() as stopped:
        try:
            _run(arguments, app, reporter, stopped)
        except (KeyboardInterrupt, RunError) as error:
            if not stopped.ended_start(error):
                raise
            reporter.event("stopped", BROKEN_OFF)
            return stopped.exit_code
    return 0


def _run(arguments: argparse.Namespace, app: str, reporter: Reporter, stopped: RunStop) -> None:
    run = start(
        app,
        arguments.parts.app,
        check_persist=arguments.check_persist,
        on_error=arguments.on_error,
        inputs=arguments.inputs,
        outputs=arguments.outputs,
        tell=partial(reporter.doing, "starting", is_shared=True),
    )
    for finding in unused_addresses(run.topology, arguments.inputs, arguments.outputs):
        reporter.warn(finding)
    try:
        check_runnable(run.topology)
        asyncio.run(_serve(run, arguments.stop_when_idle, reporter, stopped, as_json=arguments.json))
    finally:
        run.close()


async def _serve(run: MemoryRun, idle_s: float | None, reporter: Reporter, stopped: RunStop, *, as_json: bool) -> None:
    def show(record: KafkaRecord) -> None:
        if as_json:
            shown = Record(record.key, record.value, tuple(record.headers)).to_json()
            print_json({"state": "running", "topic": record.topic, **shown})
        else:
            reporter.note(record_line(record))

    server = MemoryServer(run, reporter.warn, show, Letters(reporter.warn).tell)
    run.now_ms = time.time_ns() // 1_000_000
    addresses = await server.start()
    stopped.is_started = True
    reporter.initialized(listening(run.topology, addresses), None)
    topics = [source.place for source in run.topology.sources() if has_records(source)]
    records = RecordInput(reporter.warn) if topics else None
    if records is not None:
        reporter.note(HINT.format(", ".join(dict.fromkeys(topics))))
    told = time.monotonic()
    while not stopped.is_set() and server.failure is None:
        await server.turn()
        if records is not None and _fed(server, records) and len(topics) == sum(1 for _ in run.topology.sources()):
            break
        now = time.monotonic()
        if now - told >= PROGRESS_S:
            told = now
            reporter.progress(_snapshot("running", run, server))
        if idle_s is not None and not server.pending and now - server.active_at >= idle_s:
            break
    await server.stop()
    if server.failure is not None:
        raise server.failure
    if unfed := run.feed.unfed():
        reporter.note(UNFED.format(", ".join(unfed)))
    reporter.progress(_snapshot("stopped", run, server))
    if run.letter_count >= max(server.received, 1) and not server.emitted:
        found = Diagnostic.of("R741", count=f"{server.received:,}", command="")
        raise RunError([replace(found, fix=LETTER_FIX)])


def _fed(server: MemoryServer, records: RecordInput) -> bool:
    """Process what has come on standard input; return whether that was all."""
    while server.failure is None and (step := records.take()) is not None:
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
        messages_out=server.emitted,
        dead_letters=run.letter_count,
        batches=run.batches,
        rate=server.received / (time.monotonic() - server.began),
        lag=0,
    )
