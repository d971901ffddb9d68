"""Each process dies at each of its named points, in one life of an application: the output is that of a quiet run."""

from pathlib import Path

import pytest

from support.ledger import Ledger
from support.life import Life
from support.run import MODES

pytestmark = [pytest.mark.jvm, pytest.mark.long]
SEED, RATE = 11, 2_000
# Each death of the driver costs a start of Spark: one for each side of the publishing here, all five points in the
# long run of tests/soak.py (`make fault`).
DRIVER = ("driver.before_record:2", "driver.after_publish:2")
WORKER = ("worker.before_compute:10", "worker.after_compute:20", "worker.after_reply:30")
# Of the tasks in the driver's own Java, whose death ends the run.
TASK = ("task.before_stage:1", "task.after_reply:3", "task.before_close:1")
GATEWAY = ("gateway.after_append:20", "gateway.after_sync:25", "gateway.before_publish:30")
EGRESS = ("egress.before_send:20", "egress.after_send:30", "egress.before_position:20")
FAULTS = {
    ("python", "microbatch"): (DRIVER[0], *WORKER, *TASK[:2], *GATEWAY[:1], *EGRESS[:1]),
    ("go", "microbatch"): (DRIVER[1], *WORKER, *TASK[1:], *GATEWAY[1:], *EGRESS[1:]),
    ("python", "realtime"): (DRIVER[0], *WORKER, *GATEWAY[:1], *EGRESS[:1]),
    ("go", "realtime"): (DRIVER[1], *WORKER, *GATEWAY[1:], *EGRESS[1:]),
}


@pytest.mark.parametrize(("language", "mode"), FAULTS)
def test_whatever_dies_at_a_named_point_the_output_is_exact(language: str, mode: str, tmp_path: Path) -> None:
    faults = FAULTS[language, mode]
    with Life(language, tmp_path, *MODES[mode], seed=SEED, rate=RATE, faults=faults) as life:
        life.throttle.goal = 1_000_000  # goes on until everything has died that shall
        life.keep(
            lambda: life.fired_points() == set(faults) or life.ledger.differences > 0 or bool(life.throttle.fault),
            lambda: f"deaths at {set(faults) - life.fired_points()}",
            seconds=600,
        )
        expected = life.finish(life.throttle.settle())
        life.check(expected)
        for name in ("gateway", "egress"):
            assert life.restarts(name) + life.ends.total() >= sum(fault.startswith(name) for fault in faults)
        assert life.ends[9] == sum(fault.startswith("driver") for fault in faults), life.ends
        assert life.unanswered() >= 2, "the first two points of a worker come before its answer"
        assert life.ledger.repeating <= sum(fault.startswith("egress") for fault in faults)


def checked(*lines: str) -> Ledger:
    ledger = Ledger()
    ledger.close()
    for line in lines:
        ledger.take(line)
    return ledger


def test_the_check_can_fail() -> None:
    assert not checked("a 1 1", "b 1 1", "a 2 2").differences
    assert checked("a 1 1", "a 3 3").first == "a 3 3: it came where 2 belongs"
    assert checked("a 1 1", "a 1 1").first == "a 1 1: it came where 2 belongs"
    assert checked("a 1 2").first == "a 1 2: the state counted 1, the message is number 2"


def test_a_new_connection_may_repeat_the_end_of_the_one_before_and_nothing_else() -> None:
    ledger = checked("a 1 1", "b 1 1", "a 2 2")
    ledger.new_connection()
    for line in ("b 1 1", "a 2 2", "b 2 2"):
        ledger.take(line)
    assert (ledger.differences, ledger.repeated, ledger.repeating) == (0, 2, 1)
    ledger.new_connection()
    for line in ("a 1 1", "b 3 3"):
        ledger.take(line)
    assert ledger.first == "a 1 was repeated, but not up to 2"
