"""Other users of the machine: what Spark opens and writes is for nobody but its own processes."""

import json
import os
import socket
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import translated
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.machine.settings import LOCAL_FILES
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.spark.micro_batches import MicroBatches
from wallaroo_runtime.spark.worker_start import STOP_S
from wallaroo_runtime.worker.discovery import is_java

pytestmark = pytest.mark.jvm
END_S = 300.0  # a start of Spark and STOP_S: 30 s on a quiet machine
LOOPBACK_4, LOOPBACK_6 = "0100007F", ("00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
LISTENS = "0A"
LENGTH_BYTES, REQUEST_ID = 8, 7
RPC_REQUEST, RPC_RESPONSE, RPC_FAILURE = 3, 4, 5
ANSWER_BYTES = 1 << 16
# A query whose executor is stopped, as anybody could before Spark asked for a secret; Spark's own source makes rows.
PROGRAM = """
import json, sys, time
from pathlib import Path
from support.spark_topology import options_in, topology
from wallaroo_runtime.spark.worker_start import Workers
from wallaroo_runtime.spark.publish import Publisher
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.spark.offset_log import OffsetLog
from wallaroo_runtime.spark.query import RunningQuery
from wallaroo_runtime.spark.outbox_gate import OutboxGate
from wallaroo_runtime.spark.micro_batches import MicroBatches
from wallaroo_runtime.spark.session import create_session, stop_session
from wallaroo_runtime.spark.row_sink import RowSinks

folder = Path(sys.argv[1])
session = create_session("gone", master="local[2]", shuffle_partitions=2, directory=folder / "logs")
options = options_in(folder)
outbox = options.output.open({2})
rows = RowSinks(session, {}, options.output, options.records)
log = OffsetLog(session, options.checkpoint)
publisher = Publisher(
    outbox, ErrorPolicy.of(topology(), ""), rows=rows, offset_log=log, balance=None, records=options.records,
    tell_visits=None, tell_batch=None, application="", workers={},
)
gate = OutboxGate(publisher, outbox, 1 << 20)
batches = MicroBatches(session, lambda rows, batch: None)
writer = session.readStream.format("rate").load().writeStream
query = batches.start(writer.option("checkpointLocation", options.checkpoint))
running = RunningQuery(
    query, session, workers=Workers(session, None), batches=batches, publisher=publisher, gate=gate,
    options=options, offset_log=log, topology=topology(),
)
while query.lastProgress is None:
    time.sleep(0.1)
assert running.exception() is None
session.sparkContext._jsc.sc().schedulerBackend().stop()
end = time.monotonic() + 60
while (error := running.exception()) is None and time.monotonic() < end:
    time.sleep(0.1)
time.sleep(2)  # a micro-batch waits for the executor
began = time.monotonic()
running.stop()
stop_session(session)
print(json.dumps([str(error), time.monotonic() - began]), flush=True)
"""


def stop_executor(spark: Any) -> int:
    """Ask Spark's RPC port, as a stranger, to stop the executor; return the kind of answer."""
    jvm, configuration = spark._jvm, spark.sparkContext.getConf()
    target = configuration.get("spark.driver.host"), int(configuration.get("spark.driver.port"))
    body = b"\0" + b"\1" + _text(target[0]) + struct.pack(">I", target[1])
    body += _text("LocalSchedulerBackendEndpoint") + _serialized(jvm, "org.apache.spark.scheduler.local.StopExecutor$")
    message = struct.pack(">BQI", RPC_REQUEST, REQUEST_ID, len(body))
    frame = struct.pack(">Q", LENGTH_BYTES + len(message) + len(body)) + message + body
    with socket.create_connection(target, timeout=20) as connection:
        connection.sendall(frame)
        answer = connection.recv(ANSWER_BYTES)
    return answer[LENGTH_BYTES]


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">H", len(data)) + data


def _serialized(jvm: Any, name: str) -> bytes:
    """Return a singleton of Scala's as Java serializes it."""
    found = jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)
    data = jvm.java.io.ByteArrayOutputStream()
    jvm.java.io.ObjectOutputStream(data).writeObject(found)
    return bytes(data.toByteArray())


def listeners(pids: list[int]) -> Iterator[str]:
    """Yield the addresses, in the kernel's hexadecimal, at which processes listen for TCP."""
    links = [path for pid in pids for path in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {os.readlink(link)[len("socket:[") : -1] for link in links if link.is_symlink()}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and fields[9] in inodes:
                yield fields[1].rpartition(":")[0]


def java_below() -> list[int]:
    """Return the Java virtual machines of this process."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [pid for path in children for pid in map(int, path.read_text().split()) if is_java(pid)]


def test_a_stranger_cannot_stop_the_executor(spark: Any) -> None:
    assert spark.range(10).count() == 10
    assert stop_executor(spark) == RPC_FAILURE != RPC_RESPONSE
    assert spark.range(10).count() == 10, "the executor still takes tasks"


def test_spark_listens_on_loopback_only(spark: Any) -> None:
    found = list(listeners([os.getpid(), *java_below()]))
    assert len(found) >= 3, "of Py4J, Spark's RPC and its blocks"
    assert {address for address in found if address not in (LOOPBACK_4, *LOOPBACK_6)} == set()


def paths_below(directory: Path) -> Iterator[Path]:
    """Yield what is in a directory while Spark removes some of it."""
    for folder, directories, files in os.walk(directory):
        yield from (Path(folder, name) for name in (*directories, *files))


def mode_of(path: Path) -> int:
    """Return the mode of a file; 0: it is gone meanwhile."""
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0


def test_what_spark_writes_is_for_this_user_only(spark: Any) -> None:
    def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    directory = temporary_directory()
    others = {*paths_below(directory)}  # of tests before, whose programs make files as a user's do
    frame = spark.range(1000).mapInArrow(passed, "id LONG").repartition(2)
    assert frame.count() == 1000
    modes = {
        path: mode for path in (directory, *paths_below(directory)) if path not in others and (mode := mode_of(path))
    }
    assert any(path.suffix == ".data" for path in modes), "blocks of a shuffle"
    assert [path for path, mode in modes.items() if not stat.S_ISSOCK(mode) and mode & 0o077] == []
    assert spark._jvm.System.getProperty("java.io.tmpdir") == str(directory), "for Spark's other files"


def test_files_get_their_modes_without_a_process_for_each(spark: Any, tmp_path: Path) -> None:
    """Hadoop's own class starts chmod for each new file and directory, if it has no native library."""
    hadoop, context = spark._jvm.org.apache.hadoop.fs, spark.sparkContext._jsc.hadoopConfiguration()
    path = hadoop.Path((tmp_path / "file").as_uri())
    files = path.getFileSystem(context)
    assert files.getClass().getName() == LOCAL_FILES["spark.hadoop.fs.file.impl"]
    for mode in ("640", "755", "600"):
        files.create(path, True).close()
        files.setPermission(path, hadoop.permission.FsPermission(mode))
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == int(mode, 8)


def lines(spark: Any, folder: Path) -> Any:
    """Return a writer of what files of a folder have, a file in each micro-batch."""
    files = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(folder / "in"))
    frame = files.selectExpr("CAST(value AS BINARY)")
    return frame.writeStream.option("checkpointLocation", str(folder / "checkpoint"))


def test_micro_batches_of_several_queries_come_without_a_port_of_python(spark: Any, tmp_path: Path) -> None:
    gateway = spark.sparkContext._gateway
    before = vars(gateway).get("_callback_server"), [*listeners([os.getpid()])]  # tests before may have begun to listen
    published: dict[int, list[Any]] = {0: [], 1: []}
    running = []
    for number, rows in published.items():
        folder = tmp_path / str(number) / "in"
        folder.mkdir(parents=True)
        for file in range(3):
            (folder / f"{file}.txt").write_text(f"{number} {file}\n")
        batches = MicroBatches(spark, lambda found, batch, rows=rows: rows.append((batch, found)))
        running.append((batches, batches.start(lines(spark, folder.parent))))
    for batches, query in running:
        query.processAllAvailable()
        query.stop()
        batches.end()
    texts = {number: sorted(text for _, [text] in rows) for number, rows in published.items()}
    assert texts == {number: [f"{number} {file}" for file in range(3)] for number in published}
    assert [[batch for batch, _ in rows] for rows in published.values()] == [[0, 1, 2]] * 2
    said = "PySpark's own foreachBatch would listen, and ask nobody for a secret"
    assert (vars(gateway).get("_callback_server"), [*listeners([os.getpid()])]) == before, said


@pytest.mark.parametrize("phase", ["begin", "publish"])
@pytest.mark.parametrize("ends", ["fails", "stopped"])
def test_a_query_whose_driver_is_asked_ends(phase: str, ends: str, spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\n")
    entered, goes_on = threading.Event(), threading.Event()

    def ask(*_: Any) -> None:
        entered.set()
        assert goes_on.wait(END_S)
        raise RunError.of("R625", size=2, limit=1)

    batches = MicroBatches(spark, **{"publish": lambda rows, batch: None, phase: ask})
    query = batches.start(lines(spark, tmp_path))
    assert entered.wait(END_S)
    if ends == "stopped":
        query.stop()  # waits for nobody
        assert not query.isActive and query.exception() is None
    goes_on.set()
    if ends == "fails":
        with pytest.raises(StreamingQueryException) as caught:
            query.awaitTermination()
        assert "R625" in translated(causes_of(caught.value)).diagnostics[0].message
    batches.end()
    assert not (tmp_path / "checkpoint" / "commits" / "0").exists()


@pytest.mark.long
def test_a_query_without_executor_says_so_and_ends(tmp_path: Path) -> None:
    path = os.pathsep.join((str(Path(__file__).parents[2] / "tests"), os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=END_S, check=False, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr
    said, seconds = json.loads(done.stdout)
    assert said.startswith("R617 the executor of Spark ended unexpectedly; it takes no more tasks")
    assert seconds < STOP_S + 60, "it gives up waiting for tasks that stop workers"


def test_a_jar_of_another_build_is_named(spark: Any) -> None:
    assert java_class(spark, "sink.MicroBatches") is not None
    with pytest.raises(RunError, match=r"R758 .*realtime.jar is of another build, it has no sink.NoSuchClass"):
        java_class(spark, "sink.NoSuchClass")
