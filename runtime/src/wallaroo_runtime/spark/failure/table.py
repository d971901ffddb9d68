"""A table of the exceptions of Spark, Java, Hadoop and Kafka with their remedies, in order of precedence.

Sources: Spark's error-conditions.json and kafka-error-conditions.json, Hadoop's IOExceptions, Kafka's ApiExceptions.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from wallaroo_runtime.spark.failure.cause import Cause, significant

JARS = "give the jars that have it, e.g. --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:{hadoop}"


class Outcome(Enum):
    """The meaning of a failure of Spark for its user."""

    QUERY_FAILED = auto()
    ENDED = auto()
    DISK = auto()
    DAMAGED = auto()
    FILE_SYSTEM = auto()


class FailureRow(NamedTuple):
    """One kind of failure. A cause is of this kind if its class or its condition fits, and its message fits.

    Attributes:
        what: Describes the failure, in front of the message of the exception; may be empty.
        fix: The remedy if the outcome is `QUERY_FAILED`; may have {temporary}, {log}, {hadoop}.
        kinds: Regular expression that fits the whole name of a class.
        conditions: Regular expression that fits the beginning of one of Spark's conditions.
        message: Regular expression that fits a part of the message.
        outcome: The meaning of the failure for the user.
        in_checkpoint: Whether the message must name a file of the checkpoint.
    """

    what: str
    fix: str
    kinds: str = ""
    conditions: str = ""
    message: str = ""
    outcome: Outcome = Outcome.QUERY_FAILED
    in_checkpoint: bool = False

    def fits(self, cause: Cause, path: str) -> bool:
        """Say whether a cause is of this kind. `path` is the path of the checkpoint."""
        if self.in_checkpoint and not (path and path in cause.message):
            return False
        if self.message and not re.search(self.message, cause.message):
            return False
        is_kind = bool(self.kinds) and re.fullmatch(self.kinds, cause.kind) is not None
        is_condition = bool(self.conditions and cause.condition) and re.match(self.conditions, cause.condition)
        return bool(is_kind or is_condition) or not (self.kinds or self.conditions)


LOSS = FailureRow(
    "Kafka no longer has records that are to be read",
    "let the topic keep records for longer than a run may be away; `--topic-reset start` goes on with what there "
    "is and keeps states",
    kinds=r"org\.apache\.kafka\..*\.(OffsetOutOfRange|NoOffsetForPartition)Exception",
    conditions="KAFKA_DATA_LOSS|RESOLVED_START_OFFSET_GREATER|LOST_TOPIC_PARTITIONS|KAFKA_START_OFFSET",
)
TABLE: tuple[FailureRow, ...] = (
    # The end of Spark.
    FailureRow(
        "", "", message="stopped SparkContext|SparkContext was shut down|Shutdown in progress", outcome=Outcome.ENDED
    ),
    # Room and limits of the machine.
    FailureRow("", "", message="No space left on device|Disk quota exceeded|File too large", outcome=Outcome.DISK),
    FailureRow("", "", kinds=r".*\.\w*QuotaExceededException", outcome=Outcome.DISK),
    FailureRow("too many files are open", "raise the limit of open files (`ulimit -n`)", message="Too many open files"),
    FailureRow(
        "no further thread can be started",
        "raise the limit of processes (`ulimit -u`), or of the container (pids)",
        kinds=r"java\.lang\.OutOfMemoryError",
        message="(?i)native thread|process/resource limits",
    ),
    FailureRow(
        "Spark has no memory left",
        "give it more, e.g. --conf spark.driver.memory=4g (executors: spark.executor.memory)",
        kinds=r"java\.lang\.OutOfMemoryError|.*\.SparkOutOfMemoryError",
        conditions=r"\w*OUT_OF_MEMORY|UNABLE_TO_ACQUIRE_MEMORY|CANNOT_LOAD_STATE_STORE\.\w+_OUT_OF_MEMORY"
        "|INVALID_(DRIVER|EXECUTOR)_MEMORY",
    ),
    FailureRow(
        "an executor has ended",
        "look for its reason in the executors' logs; where it had no memory left, raise spark.executor.memory or "
        "spark.executor.memoryOverhead",
        message="ExecutorLostFailure|exit code 137|exceeding (?:physical |virtual )?memory limits",
    ),
    FailureRow(
        "the calls of a program go too deep for Java's stack",
        "give --conf spark.driver.extraJavaOptions=-Xss16m (executors: spark.executor.extraJavaOptions)",
        kinds=r"java\.lang\.StackOverflowError",
    ),
    FailureRow(
        "the results of a micro-batch are too large for the driver",
        "give --conf spark.driver.maxResultSize=4g",
        message=r"spark\.driver\.maxResultSize",
    ),
    # The checkpoint.
    FailureRow("", "", conditions="STATE_STORE_ROW_CHECKSUM|STATE_STORE_(KEY|VALUE)_\\w+", outcome=Outcome.DAMAGED),
    FailureRow(
        "",
        "",
        conditions="CANNOT_LOAD_STATE_STORE|CHECKPOINT_FILE_CHECKSUM|BATCH_METADATA_NOT_FOUND|MALFORMED_LOG_FILE"
        "|STREAMING_(STATEFUL_OPERATOR|CHECKPOINT)_MISSING|CANNOT_LOAD_CHECKPOINT|STATE_STORE_UNEXPECTED_EMPTY_FILE",
        in_checkpoint=True,
        outcome=Outcome.DAMAGED,
    ),
    FailureRow("", "", message="Incomplete log file", in_checkpoint=True, outcome=Outcome.DAMAGED),
    FailureRow(
        "",
        "",
        kinds=r".*\.(ChecksumException|EOFException|FileNotFoundException|NoSuchFileException|RocksDBException"
        r"|FSDataInputStreamException)",
        in_checkpoint=True,
        outcome=Outcome.DAMAGED,
    ),
    FailureRow(
        "",
        "",
        message="Corruption|CANNOT_LOAD_STATE_STORE|CHECKSUM_VERIFICATION",
        in_checkpoint=True,
        outcome=Outcome.DAMAGED,
    ),
    FailureRow(
        "another query writes the same checkpoint",
        "let only one run have it: stop the other one",
        kinds=r".*\.ConcurrentModificationException",
        conditions="CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY",
    ),
    FailureRow(
        "",
        "",
        conditions="STREAMING_CHECKPOINT_LOG_WRITE_FAILURE|CANNOT_WRITE_STATE_STORE|FAILED_RENAME",
        kinds=r".*\.FileAlreadyExistsException",
        in_checkpoint=True,
        outcome=Outcome.FILE_SYSTEM,
    ),
    # Java, its libraries and classes.
    FailureRow(
        "Java cannot load a native library",
        "let {temporary} be on a disk from which programs may be executed (no `noexec`), or set TMPDIR to such a one",
        kinds=r"java\.lang\.UnsatisfiedLinkError",
    ),
    FailureRow("Java is too old", "install Java 17 or newer", kinds=r"java\.lang\.UnsupportedClassVersionError"),
    FailureRow(
        "this is no source or sink of Spark's here",
        "take Kafka's own source or sink, whose jars are fetched (docs/kafka.md)",
        conditions=r"KAFKA_DATA_SOURCE_NOT_ENABLED",
    ),
    FailureRow(
        "Spark does not have this format",
        f"correct the format's name, or {JARS}",
        conditions=r"DATA_SOURCE_NOT_(FOUND|EXIST)",
    ),
    FailureRow(
        "Spark's jars do not have a class, or have it of another version",
        JARS,
        kinds=r"(java\.lang\.)?(ClassNotFoundException|NoClassDefFoundError|NoSuchMethodError|NoSuchFieldError"
        r"|AbstractMethodError|IncompatibleClassChangeError|ExceptionInInitializerError|LinkageError)"
        r"|.*\.UnsupportedFileSystemException|java\.util\.ServiceConfigurationError|.*\.SparkClassNotFoundException",
        conditions=r"\w+_DATA_SOURCE_NOT_ENABLED|CANNOT_LOAD_\w*CLASS",
    ),
    FailureRow(
        "Spark's jars do not have a file system",
        JARS,
        message="No FileSystem for scheme|No AbstractFileSystem configured",
    ),
    FailureRow(
        "driver and executors run different versions of a class",
        "let all machines have the same PySpark, Java and jars",
        kinds=r"java\.io\.(InvalidClassException|NotSerializableException|StreamCorruptedException)"
        r"|java\.lang\.ClassCastException",
    ),
    # Kafka.
    LOSS,
    FailureRow(
        "Kafka does not let this client in, or not do this",
        "correct user, password, certificate or mechanism in the options, or have the broker allow it (its ACLs)",
        kinds=r"org\.apache\.kafka\..*(Authorization|Authentication|Sasl)\w*Exception|.*\.LoginException",
    ),
    FailureRow(
        "Kafka has no such topic or partition",
        "create it, e.g. with `wallaroo topics create`, or correct its name",
        kinds=r"org\.apache\.kafka\..*(UnknownTopic\w*|InvalidTopic)Exception",
        conditions="KAFKA_NULL_TOPIC",
    ),
    FailureRow(
        "Kafka does not take a record",
        "raise max.message.bytes of the topic and kafka.max.request.size of the sink for one that is too large; "
        "correct the encoder for another one",
        kinds=r"org\.apache\.kafka\..*\.(RecordTooLarge|RecordBatchTooLarge|InvalidRecord|InvalidTimestamp"
        r"|CorruptRecord|UnsupportedForMessageFormat)Exception",
        conditions="KAFKA_MALFORMED_RECORD",
    ),
    FailureRow(
        "Kafka's client does not know a setting",
        "correct the options of the source or sink",
        kinds=r"org\.apache\.kafka\.common\.config\.ConfigException",
    ),
    FailureRow(
        "Kafka gave no answer",
        "start the brokers",
        kinds=r"org\.apache\.kafka\.common\.errors\.(Timeout|Disconnect|Network|BrokerNotAvailable|LeaderNotAvailable"
        r"|NotLeaderOrFollower|CoordinatorNotAvailable|NotEnoughReplicas\w*|KafkaStorage|Retriable)Exception",
    ),
    FailureRow("Kafka gave no answer", "start the brokers", message="Cannot fetch record for offset"),
    FailureRow(
        "Kafka refuses it",
        "correct what it names: in the options, the topic's settings or the brokers'",
        kinds=r"org\.apache\.kafka\..*",
        conditions=r"KAFKA_|\w*_TRIGGER_AVAILABLENOW",
    ),
    # Files and networks.
    FailureRow(
        "a file cannot be read or written for want of permission",
        "let the user that runs the application have it (`ls -l`, ACLs of the file system)",
        kinds=r"(.*\.)?(AccessDenied|AccessControl)Exception|PermissionError|.*\.AuthorizationException",
    ),
    FailureRow(
        "a file cannot be read or written for want of permission",
        "let the user that runs the application have it (`ls -l`, ACLs of the file system)",
        message="Permission denied|Operation not permitted",
    ),
    FailureRow("a disk is read-only", "mount it for writing, or use another one", message="Read-only file system"),
    FailureRow("a disk fails", "look at the machine's log (`dmesg`) and replace it", message="Input/output error"),
    FailureRow(
        "a network disk was unmounted or changed", "mount it again", message="Stale file handle|not connected: file"
    ),
    FailureRow(
        "the name of a file has a colon, which Hadoop takes for the end of a scheme",
        "rename the file, or take it out of the directory, e.g. with - for :",
        message="Relative path in absolute URI",
    ),
    FailureRow(
        "HDFS is in safe mode or in standby",
        "wait until it has left that (`hdfs dfsadmin -safemode get`)",
        kinds=r".*\.(SafeMode|Standby|RetriableHdfs|ObserverRetryOnActive)Exception",
    ),
    FailureRow(
        "no credentials are accepted",
        "give those of this file system or cluster, e.g. kinit, AWS_ACCESS_KEY_ID, or --conf spark.hadoop.fs.s3a.*",
        kinds=r".*\.(NoAuthWithAWSException|NoAwsCredentialsException|CredentialInitializationException"
        r"|KerberosAuthException|SecretManager\$InvalidToken|AuthenticationException|GSSException)"
        r"|java\.security\..*",
    ),
    FailureRow(
        "a certificate is not accepted",
        "correct certificates and the host's name in them",
        kinds=r"javax\.net\.ssl\..*|java\.security\.cert\..*",
    ),
    FailureRow(
        "a host cannot be reached",
        "start what listens there, or correct the address",
        kinds=r"(java\.net\.|.*\.net\.)(Connect|UnknownHost|NoRouteToHost|ConnectTimeout|SocketTimeout|Socket|Bind"
        r"|PortUnreachable|HttpConnectTimeout)Exception|.*\.(AnnotatedConnect|ClosedChannel|UnresolvedAddress)\w*"
        r"|java\.nio\.channels\.Unresolved\w+|ConnectionRefusedError|.*\.RpcTimeoutException|.*\.HttpHostConnectException",
    ),
    FailureRow(
        "a host cannot be reached", "start what listens there, or correct the address", message="Connection refused"
    ),
    FailureRow(
        "a compressed file is damaged",
        "take it out of the directory, or write it again whole",
        kinds=r"java\.util\.zip\..*",
    ),
    FailureRow(
        "a file is cut, or not of the format of its name",
        "take it out of the directory, or write it again whole",
        kinds=r"(java\.io\.)?EOFException",
    ),
    FailureRow(
        "a file is not there, or no longer",
        "put it back or correct the path; where files are removed after some time, let them stay for longer",
        kinds=r".*\.(FileNotFound|NoSuchFile|NotDirectory)Exception|FileNotFoundError",
        conditions=r"PATH_NOT_FOUND|FAILED_READ_FILE\.FILE_NOT_EXIST|RENAME_SRC_PATH_NOT_FOUND",
    ),
    FailureRow(
        "a file of a source cannot be read",
        "take it out of the directory or write it again; the format's options say how such files are passed over",
        kinds=r".*\.(Parquet\w*|Orc\w*|Avro\w*|MalformedInput|UnmappableCharacter|Charset|BadRecord)\w*Exception",
        conditions=r"FAILED_READ_FILE|MALFORMED_RECORD|MALFORMED_CSV|UNABLE_TO_INFER|CONFLICTING_(DIRECTORY|PARTITION)"
        "|INVALID_BUCKET_FILE|UNSUPPORTED_FILE",
    ),
    # SQL, and Spark's own limits.
    FailureRow(
        "Spark does not accept the SQL, the schema or an option of a source or sink",
        "correct it in the program",
        kinds=r".*\.(Analysis|ExtendedAnalysis|Parse|SparkUnsupportedOperation|SparkIllegalArgument)Exception",
        conditions=r"UNRESOLVED_|PARSE_|DATATYPE_MISMATCH|INVALID_OPTIONS|STREAMING_OUTPUT_MODE|UNSUPPORTED_|PATH_ALREADY",
    ),
    FailureRow(
        "Spark does not accept an option of a source or sink",
        "correct it in the program",
        kinds=r"java\.lang\.IllegalArgumentException",
        message=r"Invalid value '.*' for option|[Oo]ption '?[\w.]+'? (must|is|should)",
    ),
    FailureRow(
        "the SQL of a source or sink fails on a value",
        "correct it for such values, e.g. with try_cast or try_divide",
        kinds=r".*\.Spark(NumberFormat|Arithmetic|DateTime|ArrayIndexOutOfBounds|NoSuchElement)Exception",
        conditions=r"CAST_|DIVIDE_BY_ZERO|ARITHMETIC_OVERFLOW|NUMERIC_VALUE_OUT|CANNOT_PARSE|INVALID_ARRAY_INDEX"
        "|USER_RAISED_EXCEPTION",
    ),
    FailureRow(
        "Spark did not do in time what it has to do",
        "give it more processors, or look for what holds it up in {log}",
        kinds=r"java\.util\.concurrent\.TimeoutException|TimeoutError",
    ),
    FailureRow(
        "a thread of Spark was interrupted",
        "run it again",
        kinds=r"java\.lang\.InterruptedException|.*\.(ClosedByInterrupt|InterruptedIO)Exception",
    ),
)


def row_of(chain: Sequence[Cause], checkpoint: str = "") -> tuple[FailureRow, Cause] | None:
    """Return the first row that fits a cause, with the outermost such cause, which mostly names the place."""
    path = checkpoint.partition("://")[2] or checkpoint
    clear = significant(chain)
    ordered = [*clear, *(cause for cause in reversed(chain) if cause not in clear)]
    return next(((row, cause) for row in TABLE for cause in ordered if row.fits(cause, path)), None)
