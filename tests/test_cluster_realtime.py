"""Real-time mode on the cluster of hosts: code runs next to the driver, state is on executors; both are killed."""

import contextlib
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from support.case import CASES
from support.host import Host, descendants
from support.run import WALLAROO, Receiver, Run
from support.standalone import Deployment, cmdline, kill
from support.state import STATE, by_letter, totals
from test_realtime_remote import Words
from test_realtime_run import Sender, lines, wait_for_all, wrong

pytestmark = [pytest.mark.jvm, pytest.mark.cluster]
LONG_S = 600.0
DRIVER = b"wallaroo_runtime.cli.driver"
ASKS = """
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen
from wallaroo_runtime.monitor.endpoint import driver_of, monitor_of
checkpoint, name = Path(sys.argv[1]), sys.argv[2]
parts = urlsplit(monitor_of(checkpoint, driver_of(checkpoint)))
print(urlopen(f"http://{parts.netloc}/api/v1/state/{name}?{parts.query}&limit=1000").read().decode())
"""
BORDERS = ("--conf", "spark.wallaroo.realtime.batchSeconds=5")


def test_counts_stay_exact_over_deaths_of_executors_and_driver(
    deployment: Deployment, archives: Callable[..., Path]
) -> None:
    """Executors die at drawn moments, so that their tasks do between any two calls of the engine."""
    cluster, drawn = deployment.cluster, random.Random(17)
    cluster.alive(2)
    host, archive = deployment.driver(archives("word_count-go", CASES / "word_count"))
    checkpoint = cluster.shared / f"{deployment.name}-realtime"
    with (
        Receiver(deployment.scene.listen()) as receiver,
        Run(
            archive, receiver, checkpoint, *deployment.settings(host), *BORDERS, "--mode", "realtime", "--restart",
            "on-failure", source=f"{host.address}:7010", verb="submit", prefix=host.entry,
            dial=deployment.scene.connect, **host.environment(),
        ) as run,
    ):  # fmt: skip
        sender = Sender(run.ready(), rate=200, seed=7)

        def receive_more(count: int) -> None:
            known = len(receiver.lines())
            run.wait_while_alive(lambda: len(receiver.lines()) >= known + count, lambda: f"{count} results", LONG_S)

        def commit_more() -> None:
            """Wait until a task is there, which may have been the next attempt at its batch, and has ended it."""
            known = run.last("batches")
            run.wait_while_alive(lambda: run.last("batches") > known, lambda: "a batch", LONG_S)

        for _ in range(3):
            commit_more()
            receive_more(drawn.randint(100, 900))
            for pid in cluster.executors():
                kill(pid)
        commit_more()
        receive_more(drawn.randint(100, 900))
        (driver,) = [pid for pid in descendants(run.process.pid) if DRIVER in cmdline(pid)]
        os.kill(driver, signal.SIGKILL)
        receive_more(1000)
        sent = sender.end()
        wait_for_all(receiver, sent, run.said)
        run.wait_for("messages_processed", sum(sent.values()))
        run.wait_while_alive(lambda: shown(host, checkpoint) == by_letter(sent), lambda: "states of all messages")
        told = host.run(WALLAROO, "status", checkpoint)
        assert (told.returncode, "Split and Count" in told.stdout) == (0, True), told.stdout + told.stderr
        assert run.stop() == 0, run.said()
    assert wrong(receiver.lines(), sent) == []


def test_counts_stay_exact_when_remote_services_die_too(deployment: Deployment, archives: Callable[..., Path]) -> None:
    """The checkpoint is at a URL; executor, gateway and egress are killed one after the other, in a drawn order."""
    cluster, drawn = deployment.cluster, random.Random(29)
    cluster.alive(2)
    archive = archives("word_count-go", CASES / "word_count")
    journal = deployment.gateway.directory / "journal"
    with (
        Receiver(deployment.scene.listen()) as receiver,
        deployment.run(archive, receiver, *BORDERS, "--mode", "realtime") as run,
    ):
        (address,) = run.ready().addresses()
        with contextlib.closing(Words(address, journal, 29, 200, words=40, dial=deployment.scene.connect)) as words:
            words.goal = 1 << 40

            def receive_more(count: int) -> None:
                known = len(receiver.lines())
                run.wait_while_alive(
                    lambda: len(receiver.lines()) >= known + count, lambda: words.fault or f"{count} results", LONG_S
                )

            def end(victim: str) -> None:
                receive_more(drawn.randint(100, 900))
                if victim == "executor":
                    for pid in cluster.executors():
                        kill(pid)
                    return
                service = getattr(deployment, victim)
                service.end(signal.SIGKILL)
                service.start()

            for victim in drawn.sample(["executor", "gateway", "egress"], 3):
                end(victim)
            receive_more(500)
            words.goal = words.settle()
            run.wait_while_alive(
                lambda: words.acknowledged >= words.goal, lambda: words.fault or "all messages", LONG_S
            )
            run.wait_for("messages_processed", words.goal)
            assert run.stop() == 0, run.said()
            expected = words.expected()
    assert wrong(lines(receiver), expected, may_repeat=True) == []


def shown(host: Host, checkpoint: Path) -> dict[str, dict[str, int]]:
    """Return what the monitor of a run shows: an executor reads the states, a worker next to the driver shows them."""
    done = host.run(sys.executable, "-c", ASKS, checkpoint, quote(STATE))
    assert done.returncode == 0, done.stderr
    return {row["key"]: totals(row["value"]) for row in json.loads(done.stdout)["keys"]}
