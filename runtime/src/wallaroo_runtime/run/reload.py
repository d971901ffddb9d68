"""`wallaroo run --watch`: a run whose program is loaded again when its files change, on a Spark that stays."""

import socket
import threading
from contextlib import ExitStack, closing
from dataclasses import replace

from wallaroo_runtime.errors import TOPOLOGY, WORKER, RunError
from wallaroo_runtime.monitor.access import new_token, parse_address
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.program.watched import ProgramFiles
from wallaroo_runtime.run.options import AppOptions, RunOptions
from wallaroo_runtime.run.run import LOOK_S, Ending, run_once
from wallaroo_runtime.run.signals import RunStop, stop_signals
from wallaroo_runtime.run.snapshot import Reporter

ENDS = {"R617"}  # of Spark's processes: nothing is left to go on with


def execute_watched(options: RunOptions, reporter: Reporter) -> None:
    """Run an application until it is stopped by a signal, or idle; each change of its files starts it again.

    A changed program that cannot be loaded is reported, and the run goes on with the one before. What fails later is
    reported, too, and the next change is another try. `--fresh` concerns the first start that gets to the checkpoint.

    Raises:
        RunError: The first start failed for what is not the program's, or Spark has ended.
    """
    options = _with_lasting_page(options)
    program = Program(options, reporter)
    with stop_signals() as stopped, ExitStack() as spark:
        try:
            while _run_once(options, reporter, program, Ending(stopped, program.has_changed, spark, program.open)):
                fresh = options.checkpoint.fresh and not program.was_opened
                options = replace(options, checkpoint=replace(options.checkpoint, fresh=fresh))
        except (KeyboardInterrupt, RunError) as error:
            if not stopped.ended_start(error):
                raise
            reporter.note("stopped before it was ready")


def _run_once(options: RunOptions, reporter: Reporter, program: "Program", ending: Ending) -> bool:
    """Run the program as it is now; return whether a changed one is to be run next."""
    stopped = ending.stopped
    program.is_new = stopped.is_started = False
    try:
        run_once(options, reporter, ending)
    except RunError as error:
        program.was_ready |= stopped.is_started
        if stopped.is_set() or program.cannot_help(error):
            raise
        program.tell(error)
        reporter.note("waiting for a change of the program")
        return program.wait(stopped)
    program.was_ready = True
    return program.is_new and not stopped.is_set()


class Loading(threading.Thread):
    """Loads a program, in a thread of its own.

    Attributes:
        error: Why it cannot be loaded.
    """

    def __init__(self, app: AppOptions) -> None:
        super().__init__(name="loading", daemon=True)
        self._app = app
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        """Load it."""
        try:
            load_application(self._app.name, self._app.args, self._app.inputs, self._app.outputs)
        except Exception as error:
            self.error = error  # raised, or reported, where the run is looked after


class Program:
    """The program of a run that is loaded again.

    Args:
        options: Say which.
        reporter: Notifies the user.

    Attributes:
        is_new: Whether a changed one waits to be run.
        was_ready: Whether it has ever been initialized.
        was_opened: Whether a start has ever got to the checkpoint.
    """

    def __init__(self, options: RunOptions, reporter: Reporter) -> None:
        self._app, self._reporter = options.app, reporter
        self._files = ProgramFiles(options.app.name)
        self._loading: Loading | None = None
        self.is_new = self.was_ready = self.was_opened = False

    def open(self) -> None:
        """Note that a start has got to the checkpoint."""
        self.was_opened = True

    def has_changed(self) -> bool:
        """Return whether its files have changed, and what they are now can be loaded; else the user is notified.

        Loading may take long, as a build in Go does; the run goes on meanwhile.
        """
        if self._loading is None:
            self._loading = Loading(self._app) if self._files.have_changed() else None
            return False
        if self._loading.is_alive():
            return False
        error, self._loading = self._loading.error, None
        if isinstance(error, RunError):
            self.tell(error)
            self._reporter.note("the program before this change goes on")
            return False
        if error is not None:
            raise error
        self._reporter.note("the program has changed: it is started again")
        self.is_new = True
        return True

    def tell(self, error: RunError) -> None:
        """Report what is wrong."""
        for finding in error.diagnostics:
            self._reporter.warn(finding)

    def cannot_help(self, error: RunError) -> bool:
        """Return whether an error stays, whatever the program is changed to."""
        if any(finding.code in ENDS for finding in error.diagnostics):
            return True
        return not self.was_ready and error.exit_code not in (TOPOLOGY, WORKER)

    def wait(self, stopped: RunStop) -> bool:
        """Wait for a change of the files; False: a signal came first."""
        stopped.is_started = True  # nothing is to be interrupted
        while not stopped.wait(LOOK_S):
            if self._files.have_changed():
                return True
        return False


def _with_lasting_page(options: RunOptions) -> RunOptions:
    """Return the options with a port and a token for the monitor that are the same after each start."""
    place = parse_address(options.monitor)
    if place is None:
        return options
    host, port = place
    if port == 0:
        family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, socket.SOCK_STREAM)) as listener:
            listener.bind(address)
            port = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    return replace(options, monitor=f"{shown}:{port}", monitor_token=new_token())
