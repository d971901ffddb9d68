"""The list of checks."""

import json
from collections.abc import Callable, Mapping, Sequence

from conformance.application import STREAMS_ARGS, VECTOR_WINDOWS
from conformance.process import Client, Worker

Launch = Callable[[Sequence[str] | None, Mapping[str, str]], Client]


def windows_args(windows: Sequence[object]) -> list[str]:
    """Return the arguments of the application Streams with some windows."""
    return [*STREAMS_ARGS, "--windows", json.dumps(windows)]


class Context:
    """What a check may use: the command, and a running worker of each application, which checks share.

    Args:
        command: Starts a worker.
        launch: Starts a worker with arguments (None: those of `Conformance`) and variables; by default the command.
    """

    def __init__(self, command: str, launch: Launch | None = None) -> None:
        self.command, self._launch = command, launch or self._command
        self._shared: dict[str, Client] = {}

    @property
    def worker(self) -> Client:
        """A worker of the application Conformance."""
        return self._of("Conformance", None)

    @property
    def other(self) -> Client:
        """Another worker of it, which holds no state of the first one's versions."""
        return self._of("another Conformance", None)

    @property
    def streams(self) -> Client:
        """A worker of the application Streams, with the windows of the vectors."""
        return self._of("Streams", windows_args(VECTOR_WINDOWS))

    def start(self, variables: Mapping[str, str] | None = None, args: Sequence[str] | None = None) -> Client:
        """Start a worker for one check alone, with some variables more, and shake hands."""
        worker = self._launch(args, variables or {})
        try:
            worker.handshake(**({} if args is None else {"interface_hash": ""}))
        except BaseException:
            worker.close()
            raise
        return worker

    def start_process(self, variables: Mapping[str, str] | None = None) -> Worker:
        """Start a worker by its command, for a check that looks at its processes."""
        worker = Worker(self.command, variables=variables)
        try:
            worker.ready().handshake()
        except BaseException:
            worker.close()
            raise
        return worker

    def how_workers_ended(self) -> str:
        """Return how shared workers ended that should run, and forget them; the next check gets new ones."""
        ends = {name: worker.how_it_ended() for name, worker in self._shared.items()}
        for name in [name for name, end in ends.items() if end]:
            self._shared.pop(name).close()
        return "; ".join(end for end in ends.values() if end)

    def close(self) -> None:
        """End the shared workers."""
        for worker in self._shared.values():
            worker.close()

    def wrong_result(self) -> set[str]:
        """Return the codes of a wrong result type; a compiler may have ruled the type out."""
        return {"C503"} if self.worker.language in ("python", "javascript") else {"C503", "C501"}

    def _command(self, args: Sequence[str] | None, variables: Mapping[str, str]) -> Client:
        worker = Worker(self.command, args=args, variables=variables)
        try:
            return worker.ready()
        except BaseException:
            worker.close()
            raise

    def _of(self, name: str, args: Sequence[str] | None) -> Client:
        if name not in self._shared:
            self._shared[name] = self.start(args=args)
        return self._shared[name]


# A check whose name begins so is of a capability (SPECIFICATION.md, section 9).
CAPABILITIES = {
    "window:": "windows", "session:": "sessions", "timer:": "timers", "send:": "crossing",
    "codec protobuf:": "protobuf", "codec ": "crossing",
    "key: a step of ": "crossing", "state: messages in a codec": "crossing", "state: a value ": "crossing",
    "generate:": "generate", "SplitFrames:": "split_frames", "in flight:": "in_flight", "careful:": "in_flight",
    "endpoints:": "in_flight", "alone:": "in_flight", "check persist: with ": "check_persist",
    "output:": "outputs", "visit:": "visits", "release:": "release", "show state:": "show_state",
}  # fmt: skip
# Optional without a name there: options of the driver name what a worker lacks.
OPTIONAL = {"state: the copy in the worker": "cache", "cache:": "cache", "fault:": "kill_points"}


def capability_of(name: str) -> str:
    """Return the capability that a check needs, or an empty text."""
    return next((needed for beginning, needed in CAPABILITIES.items() if name.startswith(beginning)), "")


def option_of(name: str) -> str:
    """Return what a check is about that a worker may leave out without saying so, or an empty text."""
    return next((option for beginning, option in OPTIONAL.items() if name.startswith(beginning)), "")


Check = Callable[[Context], None]
CHECKS: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    """Add a function to the list of checks."""

    def add(function: Check) -> Check:
        assert name not in CHECKS
        CHECKS[name] = function
        return function

    return add
