"""A real HDFS that keeps the checkpoint, and loses its name node on the way; drivers are killed, states rescaled."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.case import Case
from support.hadoop import LOOPBACK, Hadoop
from support.remote import LONG_S, PARTS, TEXTS, Site, counted, ended, payload, running
from support.run import WAIT_S, Receiver, wait_until, wallaroo

pytestmark = [pytest.mark.jvm, pytest.mark.cluster]
CASE = Case("word_count")


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    with Hadoop(tmp_path_factory.mktemp("hadoop"), has_yarn=False) as hadoop:
        yield hadoop


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with running(Site(tmp_path, "")) as made:
        yield made


def test_a_driver_killed_goes_on_from_hdfs(hadoop: Hadoop, site: Site) -> None:
    app, place = CASE.app("python"), f"{hadoop.url}/killed"
    with Receiver() as receiver:
        # Spark has stored the state of a micro-batch that is not yet done with.
        fault = {"WALLAROO_FAULT": "driver.before_publish:2"}
        with site.run(app, receiver, checkpoint=place, **fault) as first:
            begin = PARTS[0][:1]  # one micro-batch, whatever the pace of the gateway
            first.send(payload(begin))
            # It is the first micro-batch, or the second if Spark began with one without messages: then this is the end.
            some = len(counted(begin))
            wait_until(lambda: len(receiver.lines()) >= some or first.process.poll() is not None, first.said, WAIT_S)
            first.send(payload(PARTS[0][1:] + PARTS[1]))  # to the gateway, which outlives the driver
            assert ended(first) == -signal.SIGKILL
        with site.run(app, receiver, checkpoint=place) as second:
            assert f"continuing from {place}" in "".join(second.output)
            receiver.wait_for_lines(len(counted(PARTS[0] + PARTS[1])), second)
            # The repeated micro-batch has replaced that state: what could not be renamed would still be there.
            states = [name for name in hadoop.files("/killed/spark/state") if "changelog" in name]
            assert states
            assert not [name for name in states if name.endswith(".tmp")]
            second.send(payload(PARTS[2]))
            lines = receiver.wait_for_lines(len(counted(TEXTS[: 3 * 4_000])), second)
            assert second.last("bytes_by_file") == 0
            assert second.stop() == 0, second.said()
        assert sorted(lines) == sorted(counted(TEXTS[: 3 * 4_000]))
    other = Case("reverse").app("python")
    options = ("--checkpoint", place, "--master", "local[2]", "--in", site.source, "--out", "127.0.0.1:9")
    done = wallaroo("run", other, *options, *site.options())
    assert done.returncode == 1
    assert f'R603 checkpoint {place} belongs to application "' in done.stderr


def test_rescaled_in_hdfs_while_a_driver_is_left(hadoop: Hadoop, site: Site) -> None:
    app, place = CASE.app("python"), f"{hadoop.url}/rescaled"
    command = ("state", "rescale", place, "--partitions", 3, "--buckets", 5, *site.options())
    with Receiver() as receiver:
        with site.run(app, receiver, checkpoint=place) as first:
            first.send(payload(PARTS[0]))
            receiver.wait_for_lines(len(counted(PARTS[0])), first)
            killed = os.environ | {"WALLAROO_FAULT": "rescale.before_record:1", "TMPDIR": str(site.folder)}
            done = wallaroo(*command, seconds=LONG_S, env=killed)
            assert done.returncode == -signal.SIGKILL
            assert ended(first) == 1  # its gateway serves the rescale
            assert '"code": "R644"' in first.said()
        with site.run(app, receiver, checkpoint=place) as second:  # as if nobody had begun
            second.send(payload(PARTS[1]))
            receiver.wait_for_lines(len(counted(PARTS[0] + PARTS[1])), second)
            second.wait_for("messages_processed", len(PARTS[0] + PARTS[1]))  # committed, too
            assert second.stop() == 0, second.said()
        done = wallaroo(*command, seconds=LONG_S)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("3 shuffle partitions of 5 buckets, were 2 of 4; moved the states of 3 keys, ")
        assert sorted({name.split("/")[2] for name in hadoop.files("/rescaled") if "/spark" in name}) == ["spark-2"]
        with site.run(app, receiver, checkpoint=place) as third:
            third.send(payload(PARTS[2]))
            lines = receiver.wait_for_lines(len(counted(TEXTS[: 3 * 4_000])), third)
            assert third.stop() == 0, third.said()
        assert sorted(lines) == sorted(counted(TEXTS[: 3 * 4_000]))
    again = wallaroo(*command, seconds=LONG_S)
    assert again.stdout == "3 shuffle partitions of 5 buckets, as before; nothing to do\n", again.stderr


def test_a_file_system_that_cannot_be_used(site: Site) -> None:
    gone, unknown = f"hdfs://{LOOPBACK}:9/c", "hdfs://no-such-host/c"
    for place, reason, fix in (
        (gone, f"{LOOPBACK}:9: Connection refused", "start it, or correct the address"),
        (
            unknown,
            "a host cannot be reached: no-such-host",
            "start the server that listens there, or correct the address",
        ),
        (
            "s3a://bucket/c",
            "Spark's jars do not have a class",
            "add the jars that contain it, e.g. --conf spark.jars.packages=",
        ),
    ):
        options = ("--checkpoint", place, "--master", "local[2]", "--in", site.source, "--out", "127.0.0.1:9")
        done = wallaroo("run", CASE.app("python"), *options, *site.options())
        assert done.returncode == 1
        *_, first, last = done.stderr.strip().splitlines()
        assert first.startswith(f"R684 the file system of {place}")
        assert f" cannot be used; {reason}" in first
        assert last.startswith(f"  fix: {fix}")


def test_name_node_killed(hadoop: Hadoop, site: Site) -> None:
    app, place = CASE.app("go"), f"{hadoop.url}/lost"
    with Receiver() as receiver:
        with site.run(app, receiver, checkpoint=place) as first:
            first.send(payload(PARTS[0]))
            receiver.wait_for_lines(len(counted(PARTS[0])), first)
            hadoop.name_node.kill()
            first.send(payload(PARTS[1]))
            hadoop.name_node.start()  # as a service that is watched over would be
            receiver.wait_for_lines(len(counted(PARTS[0] + PARTS[1])), first)
            hadoop.name_node.kill()
            first.send(payload(PARTS[2]))
            assert ended(first) == 1
            (finding,) = json.loads(first.errors[-1])
            assert finding["code"] == "R611"
            assert "a host cannot be reached: " in finding["message"]
            assert finding["message"].endswith("Connection refused")
            assert finding["fix"].startswith("start the server that listens there, or correct the address; run again")
        hadoop.start_name_node()
        with site.run(app, receiver, checkpoint=place) as second:
            second.send(payload(PARTS[3]))
            lines = receiver.wait_for_lines(len(counted(TEXTS[: 4 * 4_000])), second)
            assert second.stop() == 0, second.said()
        assert sorted(lines) == sorted(counted(TEXTS[: 4 * 4_000]))
