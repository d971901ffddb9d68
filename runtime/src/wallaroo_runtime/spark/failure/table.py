"""A table of the exceptions of Spark, Java, Hadoop and Kafka with their remedies, in order of precedence.

Sources: Spark's error-conditions.json and kafka-error-conditions.json, Hadoop's IOExceptions, Kafka's ApiExceptions.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from wallaroo_runtime.kafka.client import ACCESS
from wallaroo_runtime.spark.failure.cause import Cause, significant

JARS = "add the jars that contain it, e.g. --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:{hadoop}"


class Outcome(Enum):
    """The kind of a failure. It determines the error code for the user (see `translated`)."""

    QUERY_FAILED = auto()
    ENDED = auto()
    DISK = auto()
    DAMAGED = auto()
    FILE_SYSTEM = auto()


class FailureRow(NamedTuple):
    """A row of the table: the patterns of one kind of failure, its description and its remedy.

    An error is of this kind if its class or its condition fits, and its message fits.

    Attributes:
        what: Describes the failure, in front of the message of the exception; may be empty.
        fix: The remedy if the outcome is `QUERY_FAILED`; may have {temporary}, {log}, {hadoop}.
        kinds: Regular expression that fits the whole name of a class.
        conditions: Regular expression that fits the beginning of the name of an error in Spark's catalogue.
        message: Regular expression that fits a part of the message.
        outcome: The kind of failure, for the error code.
        in_checkpoint: Whether a cause only fits if its message names a file of the checkpoint.
    """

    what: str = ""
    fix: str = ""
    kinds: str = ""
    conditions: str = ""
    message: str = ""
    outcome: Outcome = Outcome.QUERY_FAILED
    in_checkpoint: bool = False

    def fits(self, cause: Cause, path: str) -> bool:
        """Say whether an error has the patterns of this row. `path` is the path of the checkpoint."""
        if self.in_checkpoint and not (path and path in cause.message):
            return False
        if self.message and not re.search(self.message, cause.message):
            return False
        is_kind = bool(self.kinds) and re.fullmatch(self.kinds, cause.kind) is not None
        is_condition = bool(self.conditions and cause.condition) and re.match(self.conditions, cause.condition)
        return bool(is_kind or is_condition) or not (self.kinds or self.conditions)


LOSS = FailureRow(
    "Kafka no longer has records that this run must read",
    "let the topic keep its records for longer than the application may pause; `--topic-reset start` continues with "
    "the records that are left, and keeps the states",
    kinds=r"org\.apache\.kafka\..*\.(OffsetOutOfRange|NoOffsetForPartition)Exception",
    conditions="KAFKA_DATA_LOSS|RESOLVED_START_OFFSET_GREATER|LOST_TOPIC_PARTITIONS|KAFKA_START_OFFSET",
)
SILENCE = FailureRow(
    "Kafka gave no answer",
    "start the brokers",
    kinds=r"org\.apache\.kafka\.common\.errors\.(Timeout|Disconnect|Network|BrokerNotAvailable|LeaderNotAvailable"
    r"|NotLeaderOrFollower|\w*Coordinator\w*|NotEnoughReplicas\w*|KafkaStorage|Retriable)Exception",
)
PERMISSION = FailureRow(
    "this user has no permission to read or write a file",
    "give the permission to the user that runs the application (`ls -l`, ACLs of the file system)",
    kinds=r"(.*\.)?(AccessDenied|AccessControl)Exception|PermissionError|.*\.AuthorizationException",
)
UNREACHED = FailureRow(
    "a host cannot be reached",
    "start the server that listens there, or correct the address",
    kinds=r"(java\.net\.|.*\.net\.)(Connect|UnknownHost|NoRouteToHost|ConnectTimeout|SocketTimeout|Socket|Bind"
    r"|PortUnreachable|HttpConnectTimeout)Exception|.*\.(AnnotatedConnect|ClosedChannel|UnresolvedAddress)\w*"
    r"|java\.nio\.channels\.Unresolved\w+|ConnectionRefusedError|.*\.RpcTimeoutException|.*\.HttpHostConnectException",
)
TABLE: tuple[FailureRow, ...] = (
    # The end of Spark.
    FailureRow(message="stopped SparkContext|SparkContext was shut down|Shutdown in progress", outcome=Outcome.ENDED),
    # Room and limits of the machine.
    FailureRow(message="No space left on device|Disk quota exceeded|File too large", outcome=Outcome.DISK),
    FailureRow(kinds=r".*\.\w*QuotaExceededException", outcome=Outcome.DISK),
    FailureRow("too many files are open", "raise the limit of open files (`ulimit -n`)", message="Too many open files"),
    FailureRow(
        "no further thread can be started",
        "raise the limit of processes (`ulimit -u`), or the limit of the container (pids)",
        kinds=r"java\.lang\.OutOfMemoryError",
        message="(?i)native thread|process/resource limits",
    ),
    FailureRow(
        "Spark has no memory left",
        "give Spark more memory, e.g. --conf spark.driver.memory=4g (for executors: spark.executor.memory)",
        kinds=r"java\.lang\.OutOfMemoryError|.*\.SparkOutOfMemoryError",
        conditions=r"\w*OUT_OF_MEMORY|UNABLE_TO_ACQUIRE_MEMORY|CANNOT_LOAD_STATE_STORE\.\w+_OUT_OF_MEMORY"
        "|INVALID_(DRIVER|EXECUTOR)_MEMORY",
    ),
    FailureRow(
        "an executor has ended",
        "look for the reason in the logs of the executors; if the executor had no memory left, raise "
        "spark.executor.memory or spark.executor.memoryOverhead",
        message="ExecutorLostFailure|exit code 137|exceeding (?:physical |virtual )?memory limits",
    ),
    FailureRow(
        "a program nests its calls too deeply for Java's stack",
        "give --conf spark.driver.extraJavaOptions=-Xss16m (for executors: spark.executor.extraJavaOptions)",
        kinds=r"java\.lang\.StackOverflowError",
    ),
    FailureRow(
        "the results of a micro-batch are too large for the driver",
        "give --conf spark.driver.maxResultSize=4g",
        message=r"spark\.driver\.maxResultSize",
    ),
    # The checkpoint.
    FailureRow(conditions="STATE_STORE_ROW_CHECKSUM|STATE_STORE_(KEY|VALUE)_\\w+", outcome=Outcome.DAMAGED),
    FailureRow(
        kinds=r".*\.(ChecksumException|EOFException|FileNotFoundException|NoSuchFileException|RocksDBException"
        r"|FSDataInputStreamException)",
        conditions="CANNOT_LOAD_STATE_STORE|CHECKPOINT_FILE_CHECKSUM|BATCH_METADATA_NOT_FOUND|MALFORMED_LOG_FILE"
        "|STREAMING_(STATEFUL_OPERATOR|CHECKPOINT)_MISSING|CANNOT_LOAD_CHECKPOINT|STATE_STORE_UNEXPECTED_EMPTY_FILE",
        in_checkpoint=True,
        outcome=Outcome.DAMAGED,
    ),
    FailureRow(
        message="Incomplete log file|Corruption|CANNOT_LOAD_STATE_STORE|CHECKSUM_VERIFICATION",
        in_checkpoint=True,
        outcome=Outcome.DAMAGED,
    ),
    FailureRow(
        "another query writes the same checkpoint",
        "stop the other run, because a checkpoint is for one run at a time",
        kinds=r".*\.ConcurrentModificationException",
        conditions="CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY",
    ),
    FailureRow(
        conditions="STREAMING_CHECKPOINT_LOG_WRITE_FAILURE|CANNOT_WRITE_STATE_STORE|FAILED_RENAME",
        kinds=r".*\.FileAlreadyExistsException",
        in_checkpoint=True,
        outcome=Outcome.FILE_SYSTEM,
    ),
    # Java, its libraries and classes.
    FailureRow(
        "Java cannot load a native library",
        "mount the disk of {temporary} without `noexec`, or set TMPDIR to a directory from which programs may run",
        kinds=r"java\.lang\.UnsatisfiedLinkError",
    ),
    FailureRow("Java is too old", "install Java 17 or newer", kinds=r"java\.lang\.UnsupportedClassVersionError"),
    FailureRow(
        "Spark's format kafka cannot be used here",
        "use a Kafka source or sink of Wallaroo, for which the jars are fetched (docs/kafka.md)",
        conditions=r"KAFKA_DATA_SOURCE_NOT_ENABLED",
    ),
    FailureRow(
        "Spark does not have this format",
        f"correct the name of the format, or {JARS}",
        conditions=r"DATA_SOURCE_NOT_(FOUND|EXIST)",
    ),
    FailureRow(
        "Spark's jars do not have a class, or have another version of it",
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
        "install the same versions of PySpark, Java and jars on all machines",
        kinds=r"java\.io\.(InvalidClassException|NotSerializableException|StreamCorruptedException)"
        r"|java\.lang\.ClassCastException",
    ),
    # Kafka.
    LOSS,
    FailureRow(
        "Kafka refuses access",
        ACCESS,
        kinds=r"org\.apache\.kafka\..*(Authorization|Authentication|Sasl)\w*Exception|.*\.LoginException",
    ),
    FailureRow(
        "Kafka has no such topic or partition",
        "create the topic, e.g. with `wallaroo topics create`, or correct its name",
        kinds=r"org\.apache\.kafka\..*(UnknownTopic\w*|InvalidTopic)Exception",
        conditions="KAFKA_NULL_TOPIC",
    ),
    FailureRow(
        "Kafka refuses a record",
        "if the record is too large, raise max.message.bytes of the topic and kafka.max.request.size of the sink; "
        "if its time is refused, correct the clocks of brokers and executors; otherwise correct the encoder",
        kinds=r"org\.apache\.kafka\..*\.(RecordTooLarge|RecordBatchTooLarge|InvalidRecord|InvalidTimestamp"
        r"|CorruptRecord|UnsupportedForMessageFormat)Exception",
    ),
    FailureRow(
        "Spark cannot read the time of a record",
        "continue in real-time mode, which reads it: `wallaroo state rescale CHECKPOINT --mode realtime` (--fresh if "
        "no micro-batch has ended); or remove all records of the partition up to this one with Kafka's "
        "kafka-delete-records, and run with `--topic-reset start`, which loses the unread ones; correct the producer",
        conditions="KAFKA_MALFORMED_RECORD",
    ),
    FailureRow(
        "Kafka's client does not accept a setting",
        "correct the options of the source or sink",
        kinds=r"org\.apache\.kafka\.common\.config\.ConfigException",
    ),
    SILENCE,
    SILENCE._replace(kinds="", message="Cannot fetch record for offset"),
    FailureRow(
        "Kafka refuses a request",
        "correct what the message names, in the options or in the settings of topic or brokers",
        kinds=r"org\.apache\.kafka\..*",
        conditions=r"KAFKA_|\w*_TRIGGER_AVAILABLENOW",
    ),
    # Files and networks.
    PERMISSION,
    PERMISSION._replace(kinds="", message="Permission denied|Operation not permitted"),
    FailureRow(
        "a disk is read-only", "mount the disk for writing, or use another disk", message="Read-only file system"
    ),
    FailureRow(
        "a disk fails", "look into the machine's log (`dmesg`), and replace the disk", message="Input/output error"
    ),
    FailureRow(
        "a network disk was unmounted or changed",
        "mount the disk again",
        message="Stale file handle|not connected: file",
    ),
    FailureRow(
        "the name of a file has a colon, which Hadoop reads as the end of a URI's scheme",
        "rename the file, e.g. with - in place of the colon, or remove it from the directory",
        message="Relative path in absolute URI",
    ),
    FailureRow(
        "HDFS is in safe mode or in standby",
        "wait until HDFS is active; `hdfs dfsadmin -safemode get` shows whether it is in safe mode",
        kinds=r".*\.(SafeMode|Standby|RetriableHdfs|ObserverRetryOnActive)Exception",
    ),
    FailureRow(
        "credentials are missing or not accepted",
        "give the credentials of the file system or cluster: kinit, AWS_ACCESS_KEY_ID, --conf spark.hadoop.fs.s3a.*",
        kinds=r".*\.(NoAuthWithAWSException|NoAwsCredentialsException|CredentialInitializationException"
        r"|KerberosAuthException|SecretManager\$InvalidToken|AuthenticationException|GSSException)"
        r"|java\.security\..*",
    ),
    FailureRow(
        "a certificate is not accepted",
        "correct the certificates, or the name of the host in them",
        kinds=r"javax\.net\.ssl\..*|java\.security\.cert\..*",
    ),
    UNREACHED,
    UNREACHED._replace(kinds="", message="Connection refused"),
    FailureRow(
        "a compressed file is damaged",
        "remove the file from the directory, or write it again completely",
        kinds=r"java\.util\.zip\..*",
    ),
    FailureRow(
        "a file is incomplete, or its name has a wrong extension",
        "remove the file from the directory, or write it again completely",
        kinds=r"(java\.io\.)?EOFException",
    ),
    FailureRow(
        "a file does not exist, or no longer exists",
        "restore the file or correct the path; if files are removed after some time, keep them for longer",
        kinds=r".*\.(FileNotFound|NoSuchFile|NotDirectory)Exception|FileNotFoundError",
        conditions=r"PATH_NOT_FOUND|FAILED_READ_FILE\.FILE_NOT_EXIST|RENAME_SRC_PATH_NOT_FOUND",
    ),
    FailureRow(
        "a file of a source cannot be read",
        "remove the file from the directory, or write it again; options of the format may skip such files",
        kinds=r".*\.(Parquet\w*|Orc\w*|Avro\w*|MalformedInput|UnmappableCharacter|Charset|BadRecord)\w*Exception",
        conditions=r"FAILED_READ_FILE|MALFORMED_RECORD|MALFORMED_CSV|UNABLE_TO_INFER|CONFLICTING_(DIRECTORY|PARTITION)"
        "|INVALID_BUCKET_FILE|UNSUPPORTED_FILE",
    ),
    # SQL, and Spark's own limits.
    FailureRow(
        "Spark does not accept the SQL, the schema or an option of a source or sink",
        "correct the SQL, the schema or the option in the program",
        kinds=r".*\.(Analysis|ExtendedAnalysis|Parse|SparkUnsupportedOperation|SparkIllegalArgument)Exception",
        conditions=r"UNRESOLVED_|PARSE_|DATATYPE_MISMATCH|INVALID_OPTIONS|STREAMING_OUTPUT_MODE|UNSUPPORTED_|PATH_ALREADY",
    ),
    FailureRow(
        "Spark does not accept an option of a source or sink",
        "correct the option in the program",
        kinds=r"java\.lang\.IllegalArgumentException",
        message=r"Invalid value '.*' for option|[Oo]ption '?[\w.]+'? (must|is|should)",
    ),
    FailureRow(
        "the SQL of a source or sink fails on a value",
        "write SQL that accepts such values, e.g. with try_cast or try_divide",
        kinds=r".*\.Spark(NumberFormat|Arithmetic|DateTime|ArrayIndexOutOfBounds|NoSuchElement)Exception",
        conditions=r"CAST_|DIVIDE_BY_ZERO|ARITHMETIC_OVERFLOW|NUMERIC_VALUE_OUT|CANNOT_PARSE|INVALID_ARRAY_INDEX"
        "|USER_RAISED_EXCEPTION",
    ),
    FailureRow(
        "Spark did not finish an operation in time",
        "give Spark more processors, or look for the cause of the delay in {log}",
        kinds=r"java\.util\.concurrent\.TimeoutException|TimeoutError",
    ),
    FailureRow(
        "a thread of Spark was interrupted",
        "nothing has to be corrected",
        kinds=r"java\.lang\.InterruptedException|.*\.(ClosedByInterrupt|InterruptedIO)Exception",
    ),
)


def row_of(chain: Sequence[Cause], checkpoint: str = "") -> tuple[FailureRow, Cause] | None:
    """Return the first row of the table that fits a cause, and the outermost of the causes that the row fits."""
    path = checkpoint.partition("://")[2] or checkpoint
    clear = significant(chain)
    ordered = [*clear, *(cause for cause in reversed(chain) if cause not in clear)]
    return next(((row, cause) for row in TABLE for cause in ordered if row.fits(cause, path)), None)
