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
        is_started: Whether signals only set the flag. Before that nothing needs to be brought to an end, and each
            step of the start may take seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_started, self._is_impatient, self._number = False, False, 0
        self._raised = Raised(Interrupted)

    def take(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal: the first interrupts the start, as do further ones if Python has dropped the exception.

        A second SIGINT interrupts whatever goes on.

        Raises:
            KeyboardInterrupt: Something is to be interrupted.
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
        """Interrupt the start if a signal came and its interrupt was lost; each step that changes something asks first.

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
        """That of a start which a signal has ended, as shells count it: 130 after SIGINT, 143 after SIGTERM."""
        # PySpark has a handler of its own for SIGINT while it starts (`kept_signals`); that raises KeyboardInterrupt.
        return SIGNALLED + (self._number or signal.SIGINT)

    def ended_start(self, error: BaseException) -> bool:
        """Say whether an error is that a signal has ended the start, or parts of it; that is no failure.

        All processes of a terminal get the signal: any of them may end first, and its end is then an error here.
        """
        if self.is_started or self._is_impatient:
            return False
        if isinstance(error, RunError):
            return self.is_set()
        return isinstance(error, KeyboardInterrupt)


@contextmanager
def stop_signals() -> Iterator[RunStop]:
    """Give the flag that signals set; once it is set, all but SIGINT stay ignored until the process has ended."""
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
    """Put back our handlers: PySpark installs one for SIGINT when it starts."""
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
        java: That of a local Spark; None: nobody's, or a cluster's, which is to know of its end.
        stopped: The flag of the run.
    """
    try:
        yield
    except KeyboardInterrupt:
        if java is not None and not stopped.is_started:
            java.kill()
        raise


def end_java(java: VirtualMachine, reporter: Reporter) -> None:
    """End Java after Spark, or tell people that it outlives the run: for programs its numbers come last."""
    if (directory := java.end()) is not None:
        reporter.output("java", f"goes on for a minute or two: it keeps classes in {directory} for faster starts")
