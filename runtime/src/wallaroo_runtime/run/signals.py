"""The effect of SIGINT, SIGTERM and SIGHUP on a run: while it starts they interrupt it, later they set a flag."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.spark.machine.virtual_machine import VirtualMachine
from wallaroo_runtime.system.stop import SIGNALLED, SIGNALS, Raised, Stop, handle_ending

BROKEN_OFF = "stopped before it was ready"


class Interrupted(KeyboardInterrupt):
    """A signal has interrupted a run."""


class RunStop(Stop):
    """The flag of a run.

    Attributes:
        is_started: Whether signals only set the flag. Before that they interrupt the start, since its steps may take
            seconds and need no orderly end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_started, self._is_impatient, self._number = False, False, 0
        self._raised = Raised(Interrupted)

    def take(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal: the first one interrupts the start; a later one does so if Python has dropped the exception.

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
        """Interrupt the start if a signal came and its interrupt was lost; called before each step that changes data.

        Raises:
            KeyboardInterrupt: A signal came.
        """
        if self.is_set() and not self.is_started:
            self._raised.throw()

    def begin(self) -> None:
        """Let signals only set the flag from now on: the start is over.

        Raises:
            KeyboardInterrupt: A signal came before.
        """
        self.check()
        self.is_started = True

    @property
    def exit_code(self) -> int:
        """Exit code of a start that a signal has ended, as in shells: 130 after SIGINT, 143 after SIGTERM."""
        # PySpark has a handler of its own for SIGINT while it starts (`kept_signals`); that raises KeyboardInterrupt.
        return SIGNALLED + (self._number or signal.SIGINT)

    def ended_start(self, error: BaseException) -> bool:
        """Return whether an error only means that a signal has ended the start, or a part of it; that is no failure.

        All processes of a terminal get the signal. Any of them may end first, and its end is then an error here.
        """
        if self.is_started or self._is_impatient:
            return False
        if isinstance(error, RunError):
            return self.is_set()
        return isinstance(error, KeyboardInterrupt)


@contextmanager
def stop_signals() -> Iterator[RunStop]:
    """Give the flag that signals set; if it was set, all signals but SIGINT are ignored until the process has ended."""
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
def kept_signals() -> Iterator[None]:
    """Restore our handlers after the block, because PySpark installs one for SIGINT when it starts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending_java(java: VirtualMachine | None, stopped: RunStop) -> Iterator[None]:
    """Stop the JVM first where a start is interrupted: it holds no data yet and may be slow.

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
    """End Java after Spark; if it outlives the run, show that as output, because programs expect the numbers last."""
    if (directory := java.end()) is not None:
        reporter.output("java", f"goes on for a minute or two: it keeps classes in {directory} for faster starts")
