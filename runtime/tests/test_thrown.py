"""What Java throws comes out as a finding of ours: each row of the table, thrown for real, however it is wrapped."""

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from wallaroo_runtime.cli.main import unforeseen
from wallaroo_runtime.spark.failure.cause import Cause, causes_of
from wallaroo_runtime.spark.failure.table import TABLE, Outcome, row_of
from wallaroo_runtime.spark.failure.translate import described, translated

pytestmark = pytest.mark.jvm
CHECKPOINT = "/c/spark"
KAFKA = "org.apache.kafka.common.errors"
FS = "org.apache.hadoop.fs"
HDFS = "org.apache.hadoop.hdfs.protocol"
# Class, what it says, and a part of the finding; a class with / is a condition of Spark's with its parameter's name.
THROWN = [
    ("java.lang.IllegalStateException", "Cannot call methods on a stopped SparkContext.", "stopped SparkContext"),
    ("java.io.IOException", "/c/spark/.7.tmp (No space left on device)", "R626"),
    (f"{HDFS}.DSQuotaExceededException", "The DiskSpace quota of /c is exceeded", "R626"),
    ("java.nio.file.FileSystemException", "/in/a: Too many open files", "too many files are open"),
    ("java.lang.OutOfMemoryError", "unable to create native thread", "no further thread can be started"),
    ("java.lang.OutOfMemoryError", "Java heap space", "Spark has no memory left: Java heap space"),
    ("org.apache.spark.SparkException", "ExecutorLostFailure (executor 1 exited)", "an executor has ended"),
    ("java.lang.StackOverflowError", "", "Java's stack: StackOverflowError"),
    ("org.apache.spark.SparkException", "is bigger than spark.driver.maxResultSize (1024 MiB)", "too large for the"),
    ("CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED", "/c/spark/state/0", "R698"),
    ("STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED", "store 0", "R698"),
    ("java.lang.IllegalStateException", "Incomplete log file in /c/spark/offsets/4", "R698"),
    (f"{FS}.ChecksumException", "Checksum error: file:/c/spark/offsets/4 at 0", "R698"),
    ("java.lang.RuntimeException", "/c/spark/state/0: Corruption: bad block", "R698"),
    ("java.util.ConcurrentModificationException", "Multiple queries", "another query writes the same checkpoint"),
    (f"{FS}.FileAlreadyExistsException", "/c/spark/offsets/3 is there", "R684"),
    ("java.lang.UnsatisfiedLinkError", "/tmp/librocksdbjni.so: failed to map segment", "load a native library"),
    ("java.lang.UnsupportedClassVersionError", "A has been compiled by a more recent version", "Java is too old"),
    ("java.lang.ClassNotFoundException", "org.postgresql.Driver", "jars do not have a class"),
    ("java.io.IOException", 'No FileSystem for scheme "gs"', "jars do not have a file system"),
    ("java.io.InvalidClassException", "local class incompatible", "different versions of a class"),
    (f"{KAFKA}.OffsetOutOfRangeException", "Offsets out of range", "no longer has records"),
    (f"{KAFKA}.TopicAuthorizationException", "Not authorized to access topics: [t]", "Kafka refuses access"),
    (f"{KAFKA}.UnknownTopicOrPartitionException", "This server does not host it", "no such topic or partition"),
    (f"{KAFKA}.RecordTooLargeException", "The message is 9 bytes", "refuses a record"),
    (
        "org.apache.spark.sql.kafka010.KafkaIllegalStateException",
        "[KAFKA_MALFORMED_RECORD_TIMESTAMP] Record at topic t partition 1 offset 12 has timestamp value 9",
        "Spark cannot read the time of a record: ",
    ),
    ("org.apache.kafka.common.config.ConfigException", "Unknown value x for acks", "does not accept a setting"),
    (f"{KAFKA}.TimeoutException", "Timeout of 3000ms expired", "Kafka gave no answer"),
    ("java.util.concurrent.TimeoutException", "Cannot fetch record for offset 7 in 1 ms", "Kafka gave no answer"),
    (f"{KAFKA}.PolicyViolationException", "not this way", "Kafka refuses a request"),
    ("java.nio.file.AccessDeniedException", "/in/a.txt", "permission to read or write a file: /in/a.txt"),
    ("java.io.IOException", "/in/a.txt (Permission denied)", "permission to read or write a file: /in/a.txt"),
    ("java.io.IOException", "/out/a (Read-only file system)", "a disk is read-only"),
    ("java.io.IOException", "Input/output error", "a disk fails"),
    ("java.io.IOException", "Stale file handle", "a network disk was unmounted"),
    ("java.lang.IllegalArgumentException", "Relative path in absolute URI: a:b.txt", "has a colon"),
    ("org.apache.hadoop.ipc.StandbyException", "state standby", "safe mode or in standby"),
    ("java.security.GeneralSecurityException", "no ticket", "credentials are missing or not accepted"),
    ("javax.net.ssl.SSLException", "PKIX path building failed", "a certificate is not accepted"),
    ("java.net.UnknownHostException", "no-such-host", "a host cannot be reached: no-such-host"),
    ("java.io.IOException", "Connection refused", "a host cannot be reached"),
    ("java.util.zip.ZipException", "Not in GZIP format", "a compressed file is damaged"),
    (
        "java.io.EOFException",
        "Unexpected end of input stream",
        "a file is incomplete, or its name has a wrong extension",
    ),
    ("java.io.FileNotFoundException", "/in/gone.txt", "a file does not exist, or no longer exists: /in/gone.txt"),
    ("java.nio.charset.UnmappableCharacterException", "3", "a file of a source cannot be read"),
    ("PATH_ALREADY_EXISTS", "/out", "Spark does not accept the SQL, the schema or an option"),
    ("CAST_INVALID_INPUT", "'x'", "fails on a value"),
    ("USER_RAISED_EXCEPTION", "boom", "fails on a value"),
    ("KAFKA_DATA_SOURCE_NOT_ENABLED", "kafka", "Spark's format kafka cannot be used here"),
    ("DATA_SOURCE_NOT_FOUND", "txt", "does not have this format"),
    (
        "java.lang.IllegalArgumentException",
        "Invalid value 'abc' for option 'maxFilesPerTrigger', must be a positive integer",
        "an option of a source or sink: Invalid value 'abc'",
    ),
    ("java.util.concurrent.TimeoutException", "Futures timed out after [1 s]", "did not finish an operation in time"),
    ("java.lang.InterruptedException", "sleep interrupted", "a thread of Spark was interrupted"),
    ("java.lang.IllegalArgumentException", "no such thing", "java.lang.IllegalArgumentException: no such thing"),
]
PARAMETERS = {
    "CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED": (
        *("fileName", "expectedSize", "expectedChecksum", "computedSize", "computedChecksum"),
    ),
    "STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED": ("stateStoreId", "expectedChecksum", "computedChecksum"),
    "PATH_ALREADY_EXISTS": ("outputPath",),
    "USER_RAISED_EXCEPTION": ("errorMessage",),
    "KAFKA_DATA_SOURCE_NOT_ENABLED": ("provider",),
    "DATA_SOURCE_NOT_FOUND": ("provider",),
    "CAST_INVALID_INPUT": ("expression", "sourceType", "targetType", "ansiConfig"),
}
WRAPPERS = ("runtime", "execution", "spark", "unchecked", "text", "query")


class Thrower:
    """Makes errors in a Java virtual machine, and lets it throw them."""

    def __init__(self, spark: Any) -> None:
        self._session, self._jvm = spark, spark.sparkContext._jvm

    def made(self, kind: str, message: str) -> Any:
        """Return an error; one that this Java does not have, or of Python, as the text that Spark passes on."""
        if "." not in kind and kind.isupper():
            values = self._jvm.java.util.HashMap()
            for name in PARAMETERS[kind]:
                values.put(name, message)
            return self._spark_error(kind, values, None)
        if "kafka" in kind or "." not in kind:
            return self._text(f"{kind}: {message}")
        found = self._jvm
        for part in kind.split("."):
            found = getattr(found, part)
        if kind.endswith(".ChecksumException"):
            return found(message, 0)
        return found(int(message) if message.isdigit() else message)

    def _spark_error(self, condition: str, values: Any, cause: Any) -> Any:
        named = self._jvm.PythonUtils.toScalaMap(values)
        return self._jvm.org.apache.spark.SparkException(condition, named, cause)

    def _text(self, text: str) -> Any:
        head = "Job aborted due to stage failure: Task 0 in stage 5.0 failed 1 times, most recent failure: Lost task "
        return self._jvm.org.apache.spark.SparkException(
            f"{head}0.3 in stage 5.0 (TID 17) (host executor driver): {text}\n\tat a.B.run(B.java:1)\n\t... 28 more\n"
        )

    def wrapped(self, error: Any, how: str) -> Any:
        """Return an error that carries another one, as Java, Spark and PySpark do it."""
        java, text = self._jvm.java, str(self._jvm.org.apache.spark.util.Utils.exceptionString(error))
        if how == "runtime":
            return java.lang.RuntimeException(error)
        if how == "execution":
            return java.util.concurrent.ExecutionException(error)
        if how == "unchecked":
            return java.lang.RuntimeException("", error)
        if how == "spark":
            return self._jvm.org.apache.spark.SparkException("Job aborted.", error)
        if how == "text":
            return self._text(text)
        values = java.util.HashMap()
        for name, value in (("id", "5-6"), ("runId", "7-8"), ("message", text.partition("\n")[0])):
            values.put(name, value)
        return self._spark_error("STREAM_FAILED", values, error)

    def thrown(self, error: Any) -> Exception:
        """Return what Python gets when Java throws an error."""
        future = self._jvm.java.util.concurrent.CompletableFuture()
        future.completeExceptionally(error)
        with pytest.raises(Exception) as caught:  # noqa: PT011
            future.get()
        return caught.value


@pytest.fixture(scope="module")
def thrower(spark: Any) -> Thrower:
    return Thrower(spark)


def readable(text: str) -> bool:
    """Say whether a text has nothing of Py4J's, no line of a stack, and no rest of one."""
    return not any(sign in text for sign in ("py4j", "Py4J", "\tat ", " more\n", "28 more", "o1", "calling o"))


def test_each_row_is_thrown(thrower: Thrower) -> None:
    rows, wrong = set(), []
    for kind, message, part in THROWN:
        error = thrower.thrown(thrower.made(kind, message))
        chain = causes_of(error)
        found = str(translated(chain, CHECKPOINT))
        if part not in found or not readable(found) or unforeseen(error).diagnostics[0].code == "I901":
            wrong.append((kind, message, part, found))
        if match := row_of(chain, CHECKPOINT):
            rows.add(match[0])
    assert wrong == []
    assert [row for row in TABLE if row not in rows] == [], "no example throws it"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(THROWN), st.lists(st.sampled_from(WRAPPERS), max_size=6))
def test_it_is_known_however_it_is_wrapped(thrower: Thrower, row: tuple[str, str, str], wrappers: list[str]) -> None:
    kind, message, part = row
    error = thrower.made(kind, message)
    for how in wrappers:
        error = thrower.wrapped(error, how)
    found = translated(causes_of(thrower.thrown(error)), CHECKPOINT)
    assert part in str(found)
    assert readable(str(found)), str(found)


def row_number(kind: str, message: str) -> int:
    """Return the place in the table of what is thrown; after its end where it has none."""
    found = row_of(causes_of(f"{kind}: {message}"), CHECKPOINT)
    return TABLE.index(found[0]) if found else len(TABLE)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([row for row in THROWN if "." in row[0]]), min_size=1, max_size=4), st.booleans())
def test_a_report_is_known_by_its_text(rows: list[tuple[str, str, str]], is_python: bool) -> None:
    """Of several errors that one report names, the first row of the table counts, in whatever order they come."""
    head = "Traceback (most recent call last):\npy4j.protocol.Py4JJavaError: An error occurred while calling o11.x.\n: "
    lines = "\n\tat a.B.run(B.java:1)\nCaused by: ".join(f"{kind}: {message}" for kind, message, _ in rows)
    error = translated(causes_of((head if is_python else "") + lines + "\n\t... 28 more\n"), CHECKPOINT)
    assert readable(str(error)), error
    first = min(row_number(kind, message) for kind, message, _ in rows)
    row = TABLE[first] if first < len(TABLE) else None
    codes = {Outcome.DISK: "R626", Outcome.DAMAGED: "R698", Outcome.FILE_SYSTEM: "R684"}
    assert error.diagnostics[0].code == codes.get(row.outcome if row else Outcome.QUERY_FAILED, "R611")
    assert (row.what if row else "IllegalArgumentException: no such thing") in str(error)


def test_java_that_has_ended_is_said_in_words(thrower: Thrower) -> None:
    assert isinstance(thrower.thrown(thrower.made("java.io.IOException", "x")), Py4JJavaError)
    from py4j.protocol import Py4JNetworkError

    assert readable(str(translated(causes_of(Py4JNetworkError("Answer from Java side is empty")))))


@settings(max_examples=100)
@given(st.text("abc %é", min_size=1), st.sampled_from(["/in", "hdfs://host:8020/in"]))
def test_the_file_that_was_read_is_named(name: str, folder: str) -> None:
    place = quote(f"{folder}/{name}.gz", safe=":/")
    place = f"file://{place}" if place.startswith("/") else place
    said = f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file {place}. SQLSTATE: KD001"
    chain = [
        Cause("org.apache.spark.SparkException", said, "FAILED_READ_FILE.NO_HINT"),
        Cause("java.io.EOFException", "Unexpected end of input stream"),
    ]
    assert described(chain).reason == (
        f"a file is incomplete, or its name has a wrong extension: Unexpected end of input stream; {folder}/{name}.gz"
    )
