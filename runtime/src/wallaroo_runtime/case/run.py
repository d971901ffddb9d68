"""Runs a case of `wallaroo test` in this process, without Spark."""

from datetime import timedelta
from pathlib import Path

from wallaroo_runtime.case.case import FILE, RECORDS, Case, CaseResult, bad
from wallaroo_runtime.case.topics import feed_records, topic_lines
from wallaroo_runtime.memory.start import start
from wallaroo_runtime.topology.dead_letter_text import letter_words
from wallaroo_runtime.topology.model import GeneratorSource, KafkaSource, Topology

LATER = timedelta(hours=1)  # all windows of a case end within this time
MAX_LETTERS = 5


def run_case(case: Case, app: Path) -> CaseResult:
    """Run an application on the input of a case, and return its output. At the end, an hour passes, to end all windows.

    Raises:
        RunError: The application cannot be run.
    """
    run = start(str(app), case.arguments())
    try:
        check_input(case, run.topology)
        if case.has_records:
            feed_records(case, run)
        for number, payloads in enumerate(() if case.has_records else case.inputs()):
            run.send(payloads, str(number))
        for number, source in enumerate(run.topology.sources()):
            if isinstance(source, GeneratorSource):
                run.generate(source=str(number))
        run.advance(int(LATER.total_seconds() * 1000))
        count = sum(1 for _ in run.topology.sinks())
        values = [record.value or b"" for number in range(count) for record in run.records(str(number))]
        first = run.written_letters[:MAX_LETTERS]
        letters = [f"{letter.code} {letter.step}: {letter.error}{letter_words(letter)}" for letter in first]
        lines = topic_lines(case, run) if case.has_records else case.lines(b"".join(values))
        return CaseResult(lines, run.letter_count, letters)
    finally:
        run.close()


def check_input(case: Case, topology: Topology) -> None:
    """Check that a case has input if its application reads only topics: without records the case would test nothing.

    Raises:
        RunError: R745 if the case has no records for the topics.
    """
    sources = list(topology.sources())
    if case.setting("input", []) or not sources or not all(isinstance(each, KafkaSource) for each in sources):
        return
    topics = ", ".join(dict.fromkeys(source.place for source in sources))
    fix = f'write [[input]], file = "input.txt" and kind = "{RECORDS}"; each line of the file is TOPIC KEY VALUE'
    raise bad(case.folder / FILE, f"it has no input, and its application reads topics alone: {topics}", fix)
