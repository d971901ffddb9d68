"""A PySpark job of somebody's own with an application's steps: killed at random, and on executors of their own."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from support.spark_job import Job
from support.standalone import SETTINGS, Cluster, kill

pytestmark = pytest.mark.jvm


@pytest.mark.long
def test_a_job_that_is_killed_is_exact(tmp_path: Path) -> None:
    job, chance = Job(tmp_path, "go", "local[2]"), random.Random(7)
    for killing in range(2):
        process = job.start()
        job.reach(job.batches() + 1, process)
        time.sleep(chance.random())
        if killing % 2:
            others = [pid for pid in job.family() if pid != process.pid]  # Python, a supervisor, a worker
            os.kill(chance.choice(others), signal.SIGKILL)
            time.sleep(1)
        job.kill(process)
    job.finish(job.start())


@pytest.mark.cluster
@pytest.mark.long
def test_executors_of_their_own_get_program_and_classes(tmp_path: Path) -> None:
    job = Job(tmp_path, "go", "local-cluster[2,1,900]")
    process = job.start()
    job.reach(2, process)
    os.kill(job.executors()[0], signal.SIGKILL)
    job.finish(process)
    job.wait_for_the_end()


@pytest.mark.cluster
def test_submitted_to_a_cluster_of_hosts(cluster: Cluster) -> None:
    """Only input and output are shared: program, classes and jar come to the executors by Spark's means."""
    cluster.alive(2)
    host, folder = cluster.scene.add("job", cluster.shared), cluster.shared / "job"
    folder.mkdir()
    settings = SETTINGS | {"spark.driver.host": host.address, "spark.driver.bindAddress": host.address}
    options = [item for pair in settings.items() for item in ("--conf", "=".join(pair))]
    job = Job(folder, "python", cluster.url, *options, prefix=host.entry, **host.environment())
    process = job.start()
    job.reach(2, process)
    kill(cluster.executors()[0])
    job.finish(process)
