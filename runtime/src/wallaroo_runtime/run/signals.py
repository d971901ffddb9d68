"""Handles SIGINT, SIGTERM and SIGHUP: while a run starts, they interrupt the start. Later they set a flag."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.spark.machine.virtual_machine import VirtualMachine
from wallaroo_runtime.system.stop import SIGNALLED, SIGNALS, Raised, Stop, handle_ending

BROKEN_OFF = "stopped before it was ready"


class Interrupted(KeyboardInterrupt):
    """The exception with which a signal interrupts the start of a run."""


class RunStop(Stop):
    """The flag that signals set to stop a run.

    Attributes:
        is_started: Whether the start is over, so that signals only set the flag. During the start they interrupt, since
            steps of the start may take seconds and need no orderly end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_started, self._is_impatient, self._number = False, False, 0
        self._raised = Raised(Interrupted)

    def take(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal: set the flag, and interrupt the start once, or again if Python has dropped the exception.

        A second SIGINT interrupts any work.

        Raises:
            KeyboardInterrupt: The start, or other work, must be interrupted.
        """
        is_first = not self.is_set()
        self._number = self._number or number
        self.set()
        if not self.is_started and not self._raised.is_on_its_way():
            self._raised.throw()
        self._is_impatient = not is_first and number == signal.SIGINT
        if self._is_impatient:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Interrupt the start if a signal came but its exception was lost. Called before each step that changes data.

        Raises:
            KeyboardInterrupt: A signal came.
        """
        if self.is_set() and not self.is_started:
            self._raised.throw()

    def begin(self) -> None:
        """Note that the start is over, so that signals only set the flag.

        Raises:
            KeyboardInterrupt: A signal came before.
        """
        self.check()
        self.is_started = True

    @property
    def exit_code(self) -> int:
        """Exit code if a signal has ended the start, as in shells: 130 after SIGINT, 143 after SIGTERM."""
        # PySpark's own handler for SIGINT during its start (`kept_signals`) raises KeyboardInterrupt without a number.
        return SIGNALLED + (self._number or signal.SIGINT)

    def ended_start(self, error: BaseException) -> bool:
        """Return whether an error is only the consequence of a signal that has interrupted the start.

        All processes of a terminal get the signal. If a part of the run ends before this process, that looks like an
        error.
        """
        if self.is_started or self._is_impatient:
            return False
        if isinstance(error, RunError):
            return self.is_set()
        return isinstance(error, KeyboardInterrupt)


@contextmanager
def stop_signals() -> Iterator[RunStop]:
    """Yield the flag that signals set during the block. After a signal, SIGTERM and SIGHUP stay ignored."""
    stopped = RunStop()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = handle_ending(stopped.take)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            is_asked_again = number != signal.SIGINT and stopped.is_set()
            signal.signal(number, signal.SIG_IGN if is_asked_again else handler)


@contextmanager
def kept_signals() -> Iterator[dict[int, Any]]:
    """Restore the signal handlers after the block, because PySpark installs a handler for SIGINT when it starts.

    Yield the handlers by signal; none in a thread that cannot change them.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS} if is_main else {}
    try:
        yield before
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending_java(java: VirtualMachine | None, stopped: RunStop) -> Iterator[None]:
    """Kill the JVM if the start is interrupted during the block: it has no data yet, and may end slowly.

    Args:
        java: JVM of a local Spark; None if there is none, or for a cluster, which must be notified of its end.
        stopped: The flag of the run.
    """
    try:
        yield
    except KeyboardInterrupt:
        if java is not None and not stopped.is_started:
            java.kill()
        raise


def end_java(java: VirtualMachine, reporter: Reporter) -> None:
    """End the JVM after Spark has ended, unless the JVM writes an archive of its classes for faster starts.

    This is reported in the form of worker output, since the final numbers must be the last report of a run.
    """
    if (directory := java.end()) is not None:
        reporter.output("java", f"the run has ended; Java writes {directory} for faster starts, for a minute or two")
