"""Shows the progress of a run on stderr: for people, or as JSON. Only records of sinks go to stdout."""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.console.json_line import print_json, report
from wallaroo_runtime.console.status_line import StatusLine
from wallaroo_runtime.gateway.framing import KINDS
from wallaroo_runtime.run.snapshot import Listening, Snapshot

READY = "Application has successfully initialized."
STARTING, RUNNING, STOPPING = "starting", "running", "stopping"


class TextReporter:
    """Shows the progress of a run to people. If stderr is a terminal, its last line is a status line.

    Args:
        is_quiet: Whether to hide the status line and the output of workers.
        is_shared: Whether user code of this process, or a debugger, uses the terminal. Then there is no status line.
    """

    def __init__(self, *, is_quiet: bool = False, is_shared: bool = False) -> None:
        self._is_quiet, self._is_shared = is_quiet, is_shared
        self._line = StatusLine() if sys.stderr.isatty() and not (is_quiet or is_shared) else None

    def note(self, text: str) -> None:
        """Print a line."""
        with self.above():
            print(text, file=sys.stderr, flush=True)

    def output(self, worker: str, line: str) -> None:
        """Print the name of a worker, and a line that it has printed, with control characters escaped."""
        if not (self._is_quiet or self._is_shared):
            self.note(f"{worker} | {printable(line.expandtabs())}")

    def warn(self, finding: Diagnostic) -> None:
        """Print a finding."""
        with self.above():
            print(finding, file=sys.stderr, flush=True)

    def doing(self, state: str, what: str, *, is_shared: bool = False) -> None:
        """Show the current work (e.g. the start) and its duration in the status line, or print it if there is none."""
        if self._line is not None and not is_shared:
            self._line.show(what, is_timed=True)
        elif not self._is_quiet:
            self.close()
            self.note(what)

    def event(self, state: str, text: str, findings: Sequence[Diagnostic] = ()) -> None:
        """Print the findings that have led to an event, then the event, e.g. that a changed program runs."""
        self.close()
        for finding in findings:
            self.warn(finding)
        self.note(text)

    def initialized(self, sources: Sequence[Listening], checkpoint: Path | None) -> None:
        """Print the addresses of sources and how to send to them, and the line that the application is initialized."""
        self.close()
        for source in sources:
            how = f" (wallaroo send --framing {source.framing})" if source.framing in KINDS else ""
            self.note(f'source "{source.name}" listens at {source.address}{how}')
        self.note(READY)

    def progress(self, snapshot: Snapshot) -> None:
        """Show the numbers of the run in the status line. At the end print them as a line, even without a terminal."""
        waiting = f"waiting for sinks {snapshot.waiting:,}  " if snapshot.waiting else ""
        lag = "unknown" if snapshot.lag is None else f"{snapshot.lag:,}"
        text = (
            f"in {snapshot.messages_in:,}  out {snapshot.messages_out:,}  {snapshot.rate:,.0f}/s  "
            f"lag {lag}  {waiting}dead letters {snapshot.dead_letters:,}"
        )
        if snapshot.state == "stopped":
            self.close()
            self.note(f"stopped: {text}{_of_this_run(snapshot)}")
        elif self._line is not None:
            self._line.show(text)

    def close(self) -> None:
        """Remove the status line."""
        if self._line is not None:
            self._line.show("")

    def above(self) -> AbstractContextManager[None]:
        """Return a context in which the status line is hidden, so that the caller can print lines."""
        return nullcontext() if self._line is None else self._line.above()


def printable(text: str) -> str:
    """Return a text with escapes in place of characters that would move the cursor or hide text in a terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def _of_this_run(snapshot: Snapshot) -> str:
    """Return the numbers of this run alone, as the end of a line of totals; empty if there was no earlier run."""
    run = snapshot.run
    if not run or run["messages_in"] == snapshot.messages_in and run["messages_out"] == snapshot.messages_out:
        return ""
    numbers = f"in {run['messages_in']:,}  out {run['messages_out']:,}  dead letters {run['dead_letters']:,}"
    return f" since the checkpoint began; in this run: {numbers}"


class JsonReporter(TextReporter):
    """Shows the progress of a run to programs: prints a JSON object for each event, and an array for each finding.

    There is no status line and no output of workers, which is in the logs.
    """

    def __init__(self) -> None:
        super().__init__(is_quiet=True)
        self._state = STARTING

    def note(self, text: str) -> None:
        """Print a JSON object with the text of an event."""
        self._print(self._state, note=text)

    def warn(self, finding: Diagnostic) -> None:
        """Print a finding (code, fault, remedy) as a JSON array of one object. Errors are printed in the same form."""
        report([finding], as_json=True)

    def doing(self, state: str, what: str, *, is_shared: bool = False) -> None:
        """Print a JSON object with the state and the current work."""
        self._print(state, doing=what)
        # States of work on a changed program are not kept, since the former program runs meanwhile.
        self._state = state if state in (STARTING, STOPPING) else self._state

    def event(self, state: str, text: str, findings: Sequence[Diagnostic] = ()) -> None:
        """Print a JSON object: the state of the run (e.g. `kept`), the event in words, and the findings."""
        self._print(state, text=text, findings=[finding.to_json() for finding in findings])

    def initialized(self, sources: Sequence[Listening], checkpoint: Path | None) -> None:
        """Print a JSON object with the addresses of sources."""
        listed = [source._asdict() for source in sources]
        self._print("initialized", checkpoint=str(checkpoint) if checkpoint else None, sources=listed)
        self._state = RUNNING

    def progress(self, snapshot: Snapshot) -> None:
        """Print a JSON object with the numbers of the run."""
        print_json(snapshot.to_json(), sys.stderr)

    def _print(self, state: str, **values: Any) -> None:
        print_json({"state": state, **values}, sys.stderr)
