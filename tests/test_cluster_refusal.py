"""What is refused on the cluster of hosts: clear errors, and nothing was started."""

import io
import platform
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from support.case import CASES, Case
from support.host import Host
from support.run import WALLAROO, Receiver, wait_until
from support.standalone import Cluster, Deployment
from wallaroo_runtime.archive.manifest import MANIFEST

pytestmark = [pytest.mark.jvm, pytest.mark.cluster]
LONG_S = 600.0


def test_wrong_settings_of_spark_are_told_without_a_stack_trace(
    deployment: Deployment, archives: Callable[..., Path]
) -> None:
    host, archive = deployment.driver(archives("word_count-go", CASES / "word_count"))
    done = submitted(deployment, host, archive, "--conf", "spark.network.timeout=1s")
    assert done.returncode == 1
    assert done.stderr.startswith("R611 the query stopped; Spark did not start: ")
    assert "spark.network.timeout" in done.stderr
    assert "\tat " not in done.stderr


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            ("spark.authenticate=false", "spark.network.crypto.enabled=false"),
            "it asks for a secret, and this driver has none",
        ),
        (("spark.authenticate.secret=of-another",), "this driver's secret is not the secret of the cluster"),
    ],
)
def test_a_driver_without_the_secret_is_told_at_once(
    settings: tuple[str, ...], reason: str, deployment: Deployment, archives: Callable[..., Path]
) -> None:
    host, archive = deployment.driver(archives("word_count-go", CASES / "word_count"))
    done = submitted(deployment, host, archive, *(f"--conf={each}" for each in settings))
    assert done.returncode == 1
    assert f"R659 Spark master {deployment.cluster.url} cannot be reached; {reason}\n  fix: set SPARK_CO" in done.stderr


def test_a_cluster_without_room_is_told_while_the_application_waits(
    deployment: Deployment, archives: Callable[..., Path]
) -> None:
    with (
        Receiver(deployment.scene.listen()) as receiver,
        deployment.run(
            archives("word_count-go", CASES / "word_count"), receiver, "--conf", "spark.executor.memory=900g"
        ) as run,
    ):
        told = "the cluster gives no executor to this application, which waits; start a worker"
        run.wait_while_alive(lambda: any(told in line for line in run.output), lambda: "the note", LONG_S)


def rewritten(archive: Path, file: Path, member: str, old: bytes, new: bytes) -> Path:
    """Return a copy of an archive with other bytes in a member."""
    with tarfile.open(archive) as source, tarfile.open(file, "w:gz") as target:
        for entry in source:
            data = (source.extractfile(entry) or io.BytesIO()).read()
            if entry.name == member:
                assert old in data
                data = data.replace(old, new)
                entry.size = len(data)
            target.addfile(entry, io.BytesIO(data))
    return file


def test_what_is_refused_starts_nothing(deployment: Deployment, archives: Callable[..., Path], tmp_path: Path) -> None:
    cluster = deployment.cluster
    good = archives("word_count-go", CASES / "word_count")
    changed = rewritten(good, tmp_path / "changed.tar.gz", "topology.json", b"Count Words", b"count words")
    newer = rewritten(good, tmp_path / "newer.tar.gz", MANIFEST, b'"protocol_version": 1', b'"protocol_version": 9')
    host, archive = deployment.driver(good)
    for file in (changed, newer, archives("alphabet-go", Case("alphabet").folder)):
        shutil.copy(file, host.folder)
    other, nowhere = cluster.shared / "other", f"spark://{host.address}:7077"
    local = ("--master", "local[1]", "--in", "127.0.0.1:0", "--stop-when-idle", "0", "--checkpoint", other)
    done = host.run(WALLAROO, "run", host.folder / "alphabet-go.tar.gz", *local)
    assert done.returncode == 0, done.stderr
    deployment.options(host)  # makes the token
    before = traces(cluster)
    for name, more, said in (
        (
            changed.name,
            (),
            "R655 {} cannot be used as an archive; it is not the archive of an application, or was changed after it "
            "was packed; top",
        ),
        (
            newer.name,
            (),
            "R655 {} cannot be used as an archive; it was packed for another release; its workers speak protocol 9; "
            "this runtime knows",
        ),
        (archive.name, ("--master", nowhere), f"R659 Spark master {nowhere} cannot be reached; {host.address}:7077: "),
        (archive.name, ("--mode", "realtime"), "R755 real-time mode cannot run this: the cluster spark://"),
        (
            archive.name,
            ("--checkpoint", other),
            f'R603 checkpoint {other} belongs to application "Alphabet", not to ',
        ),
    ):
        done = submitted(deployment, host, host.folder / name, *more)
        assert done.returncode in (1, 2, 3), done.stderr
        assert done.stderr.startswith(said.format(host.folder / name)), done.stderr
        assert "\n  fix: " in done.stderr
        assert traces(cluster) <= before, "something was started"


def submitted(deployment: Deployment, host: Host, app: Path, *more: object) -> subprocess.CompletedProcess[str]:
    """Submit an archive that will not run."""
    where = ("--in", deployment.source(), "--checkpoint", deployment.checkpoint)
    return host.run(WALLAROO, "submit", app, *where, *deployment.options(host), *more, seconds=LONG_S)


def traces(cluster: Cluster) -> set[str]:
    """Return what shows that something was started: files of all hosts, and applications that the master knows."""
    paths = cluster.scene.folder.rglob("*")
    names = {str(path) for path in paths if cluster.classes not in path.parents}
    return names | set(re.findall("Registered app .*", cluster.master.said()))


def test_missing_processor_is_found_before_the_query_begins(
    deployment: Deployment, archives: Callable[..., Path]
) -> None:
    """Only executors know what they are; the first task of each says so."""
    other = {"x86_64": "arm64"}.get(platform.machine(), "amd64")
    host, archive = deployment.driver(archives("other", CASES / "reverse", "--arch", other))
    done = submitted(deployment, host, archive)
    assert done.returncode != 0
    assert "R655 " in done.stderr, done.stderr
    assert f"it is packed for linux-{other}; the executor on " in done.stderr
    assert not list(Path(deployment.checkpoint.removeprefix("file://")).glob("spark*"))
    wait_until(lambda: not deployment.cluster.executors(), lambda: "the end of the executors")
