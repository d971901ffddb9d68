"""Checks a Spark session that the user has started, and adds our classes and settings to it."""

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.machine.jar import java_class, operator_jar
from wallaroo_runtime.spark.machine.settings import JARS, SETTINGS
from wallaroo_runtime.spark.row import refused

SESSION, LEAST = "this Spark session", [4, 2]  # least version of Spark
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
SOCKETS = "io.grpc.netty.shaded.io.netty.bootstrap.Bootstrap"  # warns that a Unix socket has no TCP keepalive


def check_session(session: SparkSession, *, has_state: bool) -> None:
    """Refuse a session that cannot run steps. Else add our Java classes and, if steps keep states, RocksDB.

    Raises:
        RunError: R716, which names the needed change of the session.
    """
    if not hasattr(session, "_jsparkSession"):
        reason = "Spark Connect cannot use classes of Java"
        fix = 'unset SPARK_REMOTE, and start again with SparkSession.builder.config("spark.api.mode", "classic")'
        raise refused(SESSION, reason, fix)
    if session.sparkContext._jsc is None:
        fix = "start it again with SparkSession.builder.getOrCreate(), and read the inputs again"
        raise refused(SESSION, "it was stopped", fix)
    if [int(number) for number in session.version.split(".")[:2]] < LEAST:
        raise refused(SESSION, f"Spark {session.version} is too old", "pip install 'pyspark>=4.2,<4.4'")
    _add_classes(session)
    java: Any = session._jvm
    level = getattr(java, "org.apache.logging.log4j.Level").ERROR  # whole names, as in `java_class`
    getattr(java, "org.apache.logging.log4j.core.config.Configurator").setLevel(SOCKETS, level)
    java_class(session, "microbatch.WorkerTasks").endWith(session._jsparkSession)
    if has_state:
        _ = session.streams  # this access starts the coordinator of Spark's stores, without which each store warns
        given = str(session.conf.get(PROVIDER, ""))
        if not given or "HDFSBacked" in given:  # Spark's default, which cannot store our states
            session.conf.set(PROVIDER, SETTINGS[PROVIDER])
        # Without this setting each micro-batch uploads whole files of RocksDB in place of changes.
        if not session.conf.get(CHANGELOG, ""):
            session.conf.set(CHANGELOG, SETTINGS[CHANGELOG])


def _add_classes(session: SparkSession) -> None:
    """Give driver and executors the jar with our Java classes, unless the session already has it.

    Raises:
        RunError: R716 if the driver cannot load the jar.
    """
    jar = operator_jar()
    context: Any = session.sparkContext
    with suppress(RunError):
        java_class(session, "microbatch.MicroBatch")  # the driver may have it from an earlier Spark of this process
        if f"/{jar.name}" not in context._jsc.sc().listJars().toString():
            context._jsc.addJar(str(jar))
        return
    try:
        loader = context._jvm.Thread.currentThread().getContextClassLoader()
        loader.addURL(context._jvm.java.io.File(str(jar)).toURI().toURL())
        java_class(session, "microbatch.MicroBatch")
    except (Py4JError, RunError) as error:
        fix = f'start it with .config("{JARS}", "{jar}"), or spark-submit --jars {jar}'
        raise refused(SESSION, "it loads no jars now", fix) from error
    context._jsc.addJar(str(jar))
