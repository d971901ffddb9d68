"""Kills parts of a running application, at random and at named points, and proves that the output is exact.

`make soak SECONDS=120 SEED=7` runs it in Python and in Go; `make fault` is the long run: 1,000,000 messages, at least
50 deaths of a worker while a call is unanswered, 5 named deaths of the driver, gateway and egress killed twice each.
`make fault-go` runs it in Go alone; with `VICTIMS=workers` nothing else dies, which tests/test_soak.py does in small.
"""

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.life import Life, directory_of
from support.run import MODES
from wallaroo_runtime.worker.ending import PREFIX

# A worker may end 10 times in 60 s (W406 after that), gateway and egress likewise.
PAUSE_S = {"worker": 6.8, "gateway": 15.0, "egress": 13.0, "driver": 35.0}
# In the long run workers die, most of all; the driver at named points.
LONG_PAUSE_S = {"worker": 6.8, "gateway": 60.0, "egress": 52.0}
DRIVER = (
    "driver.before_publish:5",
    "driver.before_record:5",
    "driver.after_publish:5",
    "driver.before_commit:5",
    "driver.after_commit:5",
)
REALTIME_DRIVER = ("driver.before_record:5", "driver.after_publish:5")  # the driver publishes nothing there
# A worker is stopped first and killed as soon as a stream has been waiting for it so long; after STOPPED_S in any case.
WAITING_S, STOPPED_S = 0.3, 10.0
START_S, LAST_S = 180.0, 600.0
SPARE = 1.1  # so many times the deaths that are wanted: a busy machine has fewer at the end
SLOWEST = 8  # times slower than asked for, so that enough workers die


@dataclass
class Stopped:
    """A worker that does not run and is not dead yet.

    Attributes:
        victim: The one of its processes that is to be killed.
        others: They end when it does.
        directory: Its own; it has a file for each stream that a task has open.
        since: When it was stopped.
        waiting: Since when a stream has been open without a break.
    """

    victim: int
    others: list[int]
    directory: Path
    since: float
    waiting: float | None = None

    def is_ripe(self, now: float) -> bool:
        """Say whether a call is in flight that will not be answered; who waits too long is ripe as well."""
        # A task that was killed leaves its files.
        clients = (path.name.removeprefix(PREFIX).partition("-")[0] for path in self.directory.glob(PREFIX + "*"))
        if not any(Path("/proc", client).exists() for client in clients):
            self.waiting = None
        elif self.waiting is None:
            self.waiting = now
        has_call = self.waiting is not None and now - self.waiting > WAITING_S
        return has_call or now - self.since > STOPPED_S


class Killer:
    """Kills one process after the other.

    Args:
        life: What is killed.
        seed: Of victims and times.
        pauses: Seconds between two deaths of each kind, about.
    """

    def __init__(self, life: Life, seed: int, pauses: dict[str, float]) -> None:
        self._life, self._random, self._pauses = life, random.Random(seed), pauses
        self._due = {kind: time.monotonic() + self._pause(kind) for kind in pauses}
        self._stopped: Stopped | None = None
        self.kills: Counter[str] = Counter()

    def _pause(self, kind: str) -> float:
        return self._pauses[kind] * self._random.uniform(0.8, 1.2)

    def look(self) -> None:
        """Kill what is due; a driver only when it is ready, so that runs come to do something."""
        run, now = self._life.run, time.monotonic()
        if self._stopped is not None:
            if self._stopped.is_ripe(now):
                self._kill("worker", self._stopped.victim)
                self.rest()
            return
        if run is None or not run.is_ready or run.process.poll() is not None:
            return
        for kind, due in self._due.items():
            if now < due:
                continue
            self._due[kind] = now + self._pause(kind)
            victims = [run.process.pid] if kind == "driver" else sorted(self._life.members(kind))
            if victims:
                self._strike(kind, self._random.choice(victims))

    def _strike(self, kind: str, victim: int) -> None:
        if kind != "worker":
            self._kill(kind, victim)
            return
        with contextlib.suppress(OSError):
            directory = directory_of(victim)
            others = [process for process in self._life.members(kind) if process != victim]
            self._stopped = Stopped(victim, others, directory, time.monotonic())
            for process in (victim, *others):  # whichever of them a call goes to, it waits
                os.kill(process, signal.SIGSTOP)

    def rest(self) -> None:
        """Let the processes that are stopped and not killed go on."""
        stopped, self._stopped = self._stopped, None
        for process in (stopped.victim, *stopped.others) if stopped else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
        self._due["worker"] = time.monotonic() + self._pause("worker")

    def _kill(self, kind: str, victim: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            self.kills[kind] += 1


def soak(language: str, options: argparse.Namespace) -> bool:
    """Run one language; returns whether everything was as it should be."""
    began = time.monotonic()
    long, is_all = options.messages > 0, options.victims == "all"
    pauses = LONG_PAUSE_S if long else PAUSE_S
    with tempfile.TemporaryDirectory(prefix="wallaroo-soak-") as folder:
        faults = driver_points(options) if long and is_all else ()
        mode = MODES[options.mode]
        with Life(language, Path(folder), *mode, seed=options.seed, rate=options.rate, faults=faults) as life:
            killer = Killer(life, options.seed, pauses if is_all else {"worker": pauses["worker"]})
            life.start()
            life.keep(lambda: life.run is not None and life.run.is_ready, lambda: "the first start", START_S)
            life.throttle.goal = options.messages or sys.maxsize  # a gateway accepts messages before Spark has started
            started = time.monotonic()
            end = started + options.seconds

            def is_over() -> bool:
                killer.look()
                if long:
                    pace(life, options, time.monotonic() - started)
                done = life.throttle.acknowledged >= options.messages if long else time.monotonic() > end
                return bool(done or life.throttle.fault or life.ledger.differences)

            life.keep(
                is_over,
                lambda: f"kills; {dict(killer.kills)}, {life.unanswered()} unanswered",
                options.seconds + options.messages / (options.rate / 4) + LAST_S,
            )
            killer.rest()
            expected = life.finish(options.messages or life.throttle.settle(), LAST_S)
            failure = verdict(life, expected) or (missing(life, killer, options) if long else "")
            seconds = time.monotonic() - began
            print(
                f"soak {language}, {options.mode}: {summary(life, killer)}; seed {options.seed}; {seconds:.0f} s",
                flush=True,
            )
    if failure:
        print(f"soak {language}: {failure}", file=sys.stderr, flush=True)
    return not failure


def driver_points(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the named points at which the driver dies in the long run."""
    return DRIVER if options.mode == "microbatch" else REALTIME_DRIVER


def pace(life: Life, options: argparse.Namespace, seconds: float) -> None:
    """Let the messages last until enough workers have died, as fast as they have done so far."""
    hits = life.unanswered()
    if hits >= options.worker_kills or not hits:
        life.throttle.rate = options.rate
        return
    left = options.messages - life.throttle.acknowledged
    needed = left * hits / (seconds * (options.worker_kills * SPARE - hits))
    life.throttle.rate = min(options.rate, max(options.rate // SLOWEST, int(needed)))


def summary(life: Life, killer: Killer) -> str:
    """Return what was survived, in one line."""
    kills = [f"{count} of {kind}" for kind, count in sorted(killer.kills.items())]
    named = len(life.fired_points())
    ledger = life.ledger
    return "; ".join(
        (
            f"{life.throttle.goal:,} messages, {ledger.lines:,} lines",
            "kills survived: " + ", ".join(kills + ([f"{named} of driver at named points"] if named else [])),
            f"{life.unanswered()} workers left a call unanswered",
            f"{ledger.repeated} lines repeated on the wire by {ledger.repeating} connections",
            f"differences {ledger.differences}",
        )
    )


def missing(life: Life, killer: Killer, options: argparse.Namespace) -> str:
    """Return what the long run should have seen and has not; empty when nothing."""
    counts = {"workers that left a call unanswered": (life.unanswered(), options.worker_kills)}
    others = {
        "named deaths of the driver": (len(life.fired_points()), len(driver_points(options))),
        "deaths of the gateway": (killer.kills["gateway"], 2),
        "deaths of the egress": (killer.kills["egress"], 2),
    }
    counts |= others if options.victims == "all" else {}
    return "; ".join(f"{have} {what}, expected {want}" for what, (have, want) in counts.items() if have < want)


def verdict(life: Life, expected: Counter[str]) -> str:
    """Return what is wrong at the end; empty when nothing is."""
    try:
        life.check(expected)
    except AssertionError as error:
        return str(error) or "an assertion failed"
    return ""


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long processes are killed, for each language")
    parser.add_argument("--messages", type=int, default=0, help="the long run: so many messages, however long it takes")
    parser.add_argument("--worker-kills", type=int, default=50, help="the long run: deaths with a call unanswered")
    parser.add_argument("--rate", type=int, default=2_000, help="messages per second")
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--languages", default="python,go")
    parser.add_argument("--mode", choices=MODES, default="microbatch")
    parser.add_argument("--victims", choices=("all", "workers"), default="all")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1_000_000)
    return options


def main() -> int:
    """Run the languages one after the other; returns the exit code."""
    options = options_of()
    results = [soak(language, options) for language in options.languages.split(",")]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
