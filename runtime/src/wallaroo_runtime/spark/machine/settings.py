"""Settings with which Spark and its Java virtual machine start. This file imports no PySpark."""

import os
import re
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from wallaroo_runtime.spark.machine.jar import operator_jar
from wallaroo_runtime.spark.machine.master import SUBMITTED
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.system.class_archive import archive_option, is_being_made
from wallaroo_runtime.system.java import QUICK_JAVA

TASK_FAILURES = 4
CLASS_PATH, JARS = "spark.driver.extraClassPath", "spark.jars"
STREAMING = "org.apache.spark.sql.execution.streaming"
POLLING = "spark.sql.streaming.pollingDelay"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",  # a row may be a frame of 64 MiB
    "spark.task.maxFailures": str(TASK_FAILURES),
    "spark.speculation": "false",
    # A sort begins with a page of zeros in each task: 16 MB by default, for rows of some kilobytes. A row that is
    # longer than a page gets a page of its own.
    "spark.buffer.pageSize": "1m",
    "spark.locality.wait": "0s",
    "spark.python.unix.domain.socket.enabled": "true",  # the driver uses sockets for accumulators and collected rows
    "spark.sql.adaptive.enabled": "false",
    # Each row of a shuffle names the attempt that made it, and `spark/account.py` compares what attempts sent and
    # received. So rows of a repeated task differ; for this Spark 4.2 ends the query if a later task was complete.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.redaction.options.regex": "(?i)url|password|passphrase|secret|token|credential|jaas|key",  # in plans
    # A micro-batch has few rows: generating code for each one took 15 % of its CPU (docs/internals/experiments.md).
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.checkpointFileManagerClass": f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    POLLING: "25ms",
    "spark.sql.streaming.stateStore.providerClass": f"{STREAMING}.state.RocksDBStateStoreProvider",
    # A commit names the files of its state, so that files of an attempt without a commit are never read.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}
LOCAL_SETTINGS = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
# A local Spark runs its tasks in the Java that has our jar from its start, so it finds our class there.
LOCAL_FILES = {"spark.hadoop.fs.file.impl": "org.wallaroo.spark.query.LocalFiles"}
# A peer that connects to a port of Spark's must know the application's secret. This is only set where Spark makes the
# secret and gives it to its executors. A standalone cluster has a secret of its own.
AUTHENTICATION = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
}
SECRET_OF_SPARK = ("local", "yarn", "k8s://")
CONTAINERS = ("yarn", "k8s://")
# Memory of a worker and its supervisor without states. The garbage collector keeps a worker near 1.25 times its cache.
MIB, BESIDE_STATE_MIB = 1024 * 1024, 512
# A driver may run in a container, whose paths are too long for PySpark's sockets.
YARN_SETTINGS = {"spark.python.unix.domain.socket.enabled": "false"}
# For HDFS and similar file systems. The class in `SETTINGS` cannot replace files that the first attempt at a
# micro-batch has left there. The retries let clients wait for a name node that restarts: six times six attempts, a
# second apart, since connections and calls are retried separately.
REMOTE_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{STREAMING}.checkpointing.FileContextBasedCheckpointFileManager"
    ),
    "spark.hadoop.dfs.client.retry.policy.enabled": "true",
    "spark.hadoop.dfs.client.retry.policy.spec": "1000,5",
}
# By default Java begins with a share of the machine's memory and lets young objects fill a third of it, even without
# need. With this option it begins with less, and takes more when it needs more.
FIRST_HEAP = "-Xms128m"
LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
# It lists our operators at each start: they are not Spark's own, but real-time mode may run them.
logger.modes.name = org.apache.spark.sql.execution.streaming.runtime.RealTimeModeAllowlist
logger.modes.level = error
# Says of each connection that a Unix socket has no TCP keepalive.
logger.sockets.name = io.grpc.netty.shaded.io.netty.bootstrap.Bootstrap
logger.sockets.level = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}
appender.file.filePattern = {path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 8MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
"""


def memory_settings(master: str, cache_bytes: int) -> dict[str, str]:
    """Return the setting for the memory that containers need for workers, in addition to the JVM's memory.

    Args:
        master: Address of the Spark master, as for spark-submit.
        cache_bytes: Bytes of states that the workers may keep.

    Example:
        >>> memory_settings("yarn", 512 * 1024 * 1024), memory_settings("spark://host:7077", 0)
        ({'spark.executor.memoryOverhead': '1152m'}, {})
    """
    if not master.startswith(CONTAINERS):
        return {}
    return {"spark.executor.memoryOverhead": f"{cache_bytes * 5 // 4 // MIB + BESIDE_STATE_MIB}m"}


def start_settings(
    master: str, directory: Path, settings: dict[str, str], *, makes_archive: bool = False
) -> dict[str, str]:
    """Return all settings with which Spark starts, and write the files that they name.

    Unless spark-submit started this process, set `PYSPARK_PYTHON` and `PYSPARK_DRIVER_PYTHON`.

    Args:
        master: Address of the Spark master, as for spark-submit.
        directory: Directory of the logs; created if it is missing.
        settings: Further settings, which override those of the runtime. But the runtime's jar is added to `spark.jars`.
        makes_archive: Whether Java makes an archive of its classes at its end, if there is none.

    Raises:
        RunError: R758 if the runtime's jar is missing.
    """
    class_path = with_jar(settings.get(CLASS_PATH), operator_jar(), os.pathsep)
    directory.mkdir(parents=True, exist_ok=True)
    log4j, temporary = directory / "log4j2.properties", temporary_directory()
    log4j.write_text(LOG4J.format(path=directory / "spark.log"), encoding="utf-8")
    # Executors start workers with this interpreter. Java itself starts Python only to look up the format of a source
    # that is not a format of Java's.
    if SUBMITTED not in os.environ:  # otherwise spark-submit has chosen the interpreters
        os.environ["PYSPARK_PYTHON"] = settings.get("spark.pyspark.python", sys.executable)
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    own = {
        "spark.sql.warehouse.dir": str(temporary / "warehouse"),
        "spark.driver.extraJavaOptions": _java_options(log4j, temporary, class_path, makes_archive),
    }
    if is_local(master) and SUBMITTED not in os.environ:
        own |= LOCAL_FILES
    jars = {} if is_local(master) else {JARS: with_jar(settings.get(JARS), operator_jar())}
    return SETTINGS | _settings_of(master) | own | settings | {CLASS_PATH: class_path} | jars


def with_jar(jars: str | None, jar: Path, between: str = ",") -> str:
    """Return a list of jars with one more jar.

    Example:
        >>> with_jar(None, Path("a.jar")), with_jar("b.jar,c.jar", Path("a.jar"))
        ('a.jar', 'b.jar,c.jar,a.jar')
    """
    return between.join(filter(None, [jars, str(jar)]))


def spark_home() -> str:
    """Return the directory of Spark, found as PySpark finds it, without importing PySpark."""
    spec = find_spec("pyspark")
    package = os.path.dirname(str(spec and spec.origin))
    downloaded = os.path.join(package, "spark-distribution")
    return os.environ.get("SPARK_HOME") or (downloaded if os.path.isdir(downloaded) else package)


def _java_options(log4j: Path, temporary: Path, class_path: str, makes_archive: bool) -> str:
    kept = archive_option(
        "spark", version("pyspark"), Path(spark_home(), "jars"), *map(Path, class_path.split(os.pathsep))
    )
    kept = kept if makes_archive or not is_being_made(kept) else ""
    options = (kept, f"-Dlog4j2.configurationFile=file:{log4j}", f"-Djava.io.tmpdir={temporary}")
    return " ".join((QUICK_JAVA, FIRST_HEAP, *(f'"{option}"' for option in options if option)))


def _settings_of(master: str) -> dict[str, str]:
    secret = authentication(master)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Blocks on disk hold messages. Remote executors have directories of their own.
        own = {name: str(temporary_directory()) for name in ("spark.local.dir", "spark.python.unix.domain.socket.dir")}
        return LOCAL_SETTINGS | secret | own
    return {"spark.executor.extraJavaOptions": QUICK_JAVA} | secret | (YARN_SETTINGS if master == "yarn" else {})


def authentication(master: str) -> dict[str, str]:
    """Return the settings by which Spark's processes accept connections only from one another.

    Example:
        >>> authentication("local[2]")["spark.authenticate"], authentication("spark://host:7077")
        ('true', {})
    """
    return AUTHENTICATION if master.startswith(SECRET_OF_SPARK) else {}


def is_local(master: str | None) -> bool:
    """Say whether tasks run on this machine, in the driver's own Java virtual machine."""
    return (master or "").startswith("local")


def retrying(master: str) -> str:
    """Return a local master that repeats failed tasks. Masters of clusters repeat them by themselves.

    Example:
        >>> retrying("local"), retrying("local[*]"), retrying("local[2,1]"), retrying("spark://host:7077")
        ('local[1,4]', 'local[*,4]', 'local[2,1]', 'spark://host:7077')
    """
    if master == "local":
        master = "local[1]"
    return re.sub(r"^local\[([^],]+)\]$", rf"local[\1,{TASK_FAILURES}]", master)
