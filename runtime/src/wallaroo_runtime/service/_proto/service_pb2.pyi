from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Driver(_message.Message):
    __slots__ = ("protocol_version", "id", "application", "checkpoint", "store", "fresh")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    id: str
    application: str
    checkpoint: str
    store: str
    fresh: bool
    def __init__(self, protocol_version: _Optional[int] = ..., id: _Optional[str] = ..., application: _Optional[str] = ..., checkpoint: _Optional[str] = ..., store: _Optional[str] = ..., fresh: bool = ...) -> None: ...

class AttachJournalRequest(_message.Message):
    __slots__ = ("driver", "sources", "fsync", "fsync_interval_ms", "backlog_bytes", "tick_ms", "generators", "visits", "kafka")
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    FSYNC_FIELD_NUMBER: _ClassVar[int]
    FSYNC_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    TICK_MS_FIELD_NUMBER: _ClassVar[int]
    GENERATORS_FIELD_NUMBER: _ClassVar[int]
    VISITS_FIELD_NUMBER: _ClassVar[int]
    KAFKA_FIELD_NUMBER: _ClassVar[int]
    driver: Driver
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    fsync: str
    fsync_interval_ms: int
    backlog_bytes: int
    tick_ms: int
    generators: _containers.RepeatedCompositeFieldContainer[Generator]
    visits: _containers.RepeatedScalarFieldContainer[str]
    kafka: _containers.RepeatedCompositeFieldContainer[KafkaSource]
    def __init__(self, driver: _Optional[_Union[Driver, _Mapping]] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., fsync: _Optional[str] = ..., fsync_interval_ms: _Optional[int] = ..., backlog_bytes: _Optional[int] = ..., tick_ms: _Optional[int] = ..., generators: _Optional[_Iterable[_Union[Generator, _Mapping]]] = ..., visits: _Optional[_Iterable[str]] = ..., kafka: _Optional[_Iterable[_Union[KafkaSource, _Mapping]]] = ...) -> None: ...

class Source(_message.Message):
    __slots__ = ("port", "path", "name", "host", "tcp_port", "framing", "max_message_bytes", "connector", "header_bytes", "worker", "target")
    PORT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    TCP_PORT_FIELD_NUMBER: _ClassVar[int]
    FRAMING_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    HEADER_BYTES_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    port: int
    path: str
    name: str
    host: str
    tcp_port: int
    framing: str
    max_message_bytes: int
    connector: Connector
    header_bytes: int
    worker: str
    target: str
    def __init__(self, port: _Optional[int] = ..., path: _Optional[str] = ..., name: _Optional[str] = ..., host: _Optional[str] = ..., tcp_port: _Optional[int] = ..., framing: _Optional[str] = ..., max_message_bytes: _Optional[int] = ..., connector: _Optional[_Union[Connector, _Mapping]] = ..., header_bytes: _Optional[int] = ..., worker: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class Generator(_message.Message):
    __slots__ = ("port", "path", "name", "worker", "target")
    PORT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    port: int
    path: str
    name: str
    worker: str
    target: str
    def __init__(self, port: _Optional[int] = ..., path: _Optional[str] = ..., name: _Optional[str] = ..., worker: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class KafkaSource(_message.Message):
    __slots__ = ("port", "path", "name", "brokers", "topic", "settings", "records", "table", "max_message_bytes", "starts", "chosen", "topic_id", "reset", "ends")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class StartsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    class EndsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    PORT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_FIELD_NUMBER: _ClassVar[int]
    TOPIC_ID_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    port: int
    path: str
    name: str
    brokers: _containers.RepeatedScalarFieldContainer[str]
    topic: str
    settings: _containers.ScalarMap[str, str]
    records: bool
    table: bool
    max_message_bytes: int
    starts: _containers.ScalarMap[int, int]
    chosen: bool
    topic_id: str
    reset: str
    ends: _containers.ScalarMap[int, int]
    def __init__(self, port: _Optional[int] = ..., path: _Optional[str] = ..., name: _Optional[str] = ..., brokers: _Optional[_Iterable[str]] = ..., topic: _Optional[str] = ..., settings: _Optional[_Mapping[str, str]] = ..., records: bool = ..., table: bool = ..., max_message_bytes: _Optional[int] = ..., starts: _Optional[_Mapping[int, int]] = ..., chosen: bool = ..., topic_id: _Optional[str] = ..., reset: _Optional[str] = ..., ends: _Optional[_Mapping[int, int]] = ...) -> None: ...

class Connector(_message.Message):
    __slots__ = ("cookie", "max_credits", "refill_credits")
    COOKIE_FIELD_NUMBER: _ClassVar[int]
    MAX_CREDITS_FIELD_NUMBER: _ClassVar[int]
    REFILL_CREDITS_FIELD_NUMBER: _ClassVar[int]
    cookie: str
    max_credits: int
    refill_credits: int
    def __init__(self, cookie: _Optional[str] = ..., max_credits: _Optional[int] = ..., refill_credits: _Optional[int] = ...) -> None: ...

class AttachOutboxRequest(_message.Message):
    __slots__ = ("driver", "sinks", "sources", "backlog_bytes")
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    SINKS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    driver: Driver
    sinks: _containers.RepeatedCompositeFieldContainer[Sink]
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    backlog_bytes: int
    def __init__(self, driver: _Optional[_Union[Driver, _Mapping]] = ..., sinks: _Optional[_Iterable[_Union[Sink, _Mapping]]] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., backlog_bytes: _Optional[int] = ...) -> None: ...

class Sink(_message.Message):
    __slots__ = ("port", "name", "host", "tcp_port", "cookie", "kafka")
    PORT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    TCP_PORT_FIELD_NUMBER: _ClassVar[int]
    COOKIE_FIELD_NUMBER: _ClassVar[int]
    KAFKA_FIELD_NUMBER: _ClassVar[int]
    port: int
    name: str
    host: str
    tcp_port: int
    cookie: str
    kafka: KafkaTopic
    def __init__(self, port: _Optional[int] = ..., name: _Optional[str] = ..., host: _Optional[str] = ..., tcp_port: _Optional[int] = ..., cookie: _Optional[str] = ..., kafka: _Optional[_Union[KafkaTopic, _Mapping]] = ...) -> None: ...

class KafkaTopic(_message.Message):
    __slots__ = ("application", "brokers", "topic", "options", "records", "sets_aside", "exactly_once")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    BROKERS_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    SETS_ASIDE_FIELD_NUMBER: _ClassVar[int]
    EXACTLY_ONCE_FIELD_NUMBER: _ClassVar[int]
    application: str
    brokers: _containers.RepeatedScalarFieldContainer[str]
    topic: str
    options: _containers.ScalarMap[str, str]
    records: bool
    sets_aside: str
    exactly_once: bool
    def __init__(self, application: _Optional[str] = ..., brokers: _Optional[_Iterable[str]] = ..., topic: _Optional[str] = ..., options: _Optional[_Mapping[str, str]] = ..., records: bool = ..., sets_aside: _Optional[str] = ..., exactly_once: bool = ...) -> None: ...

class AttachReply(_message.Message):
    __slots__ = ("epoch", "store", "query", "batch", "offsets", "directory")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    store: str
    query: str
    batch: int
    offsets: str
    directory: str
    def __init__(self, epoch: _Optional[int] = ..., store: _Optional[str] = ..., query: _Optional[str] = ..., batch: _Optional[int] = ..., offsets: _Optional[str] = ..., directory: _Optional[str] = ...) -> None: ...

class Position(_message.Message):
    __slots__ = ("offset", "messages", "journal")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    offset: int
    messages: int
    journal: str
    def __init__(self, offset: _Optional[int] = ..., messages: _Optional[int] = ..., journal: _Optional[str] = ...) -> None: ...

class LimitRequest(_message.Message):
    __slots__ = ("epoch", "journal", "start", "max_bytes", "messages")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    journal: str
    start: int
    max_bytes: int
    messages: int
    def __init__(self, epoch: _Optional[int] = ..., journal: _Optional[str] = ..., start: _Optional[int] = ..., max_bytes: _Optional[int] = ..., messages: _Optional[int] = ...) -> None: ...

class SplitRequest(_message.Message):
    __slots__ = ("epoch", "journal", "start", "end", "parts")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    journal: str
    start: int
    end: int
    parts: int
    def __init__(self, epoch: _Optional[int] = ..., journal: _Optional[str] = ..., start: _Optional[int] = ..., end: _Optional[int] = ..., parts: _Optional[int] = ...) -> None: ...

class SplitReply(_message.Message):
    __slots__ = ("ends",)
    ENDS_FIELD_NUMBER: _ClassVar[int]
    ends: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ends: _Optional[_Iterable[int]] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("epoch", "journal", "start", "end")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    journal: str
    start: int
    end: int
    def __init__(self, epoch: _Optional[int] = ..., journal: _Optional[str] = ..., start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("data", "is_continued")
    DATA_FIELD_NUMBER: _ClassVar[int]
    IS_CONTINUED_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    is_continued: bool
    def __init__(self, data: _Optional[bytes] = ..., is_continued: bool = ...) -> None: ...

class CommitRequest(_message.Message):
    __slots__ = ("epoch", "journal", "offset", "counts", "done")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    JOURNAL_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    journal: str
    offset: int
    counts: _containers.RepeatedCompositeFieldContainer[VisitCount]
    done: int
    def __init__(self, epoch: _Optional[int] = ..., journal: _Optional[str] = ..., offset: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[VisitCount, _Mapping]]] = ..., done: _Optional[int] = ...) -> None: ...

class CommitReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class VisitRequest(_message.Message):
    __slots__ = ("name", "metadata", "id")
    NAME_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    metadata: bytes
    id: int
    def __init__(self, name: _Optional[str] = ..., metadata: _Optional[bytes] = ..., id: _Optional[int] = ...) -> None: ...

class VisitReply(_message.Message):
    __slots__ = ("id", "done", "count")
    ID_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    id: int
    done: bool
    count: VisitCount
    def __init__(self, id: _Optional[int] = ..., done: bool = ..., count: _Optional[_Union[VisitCount, _Mapping]] = ...) -> None: ...

class VisitCount(_message.Message):
    __slots__ = ("id", "keys", "failed")
    ID_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    id: int
    keys: int
    failed: int
    def __init__(self, id: _Optional[int] = ..., keys: _Optional[int] = ..., failed: _Optional[int] = ...) -> None: ...

class StageRequest(_message.Message):
    __slots__ = ("attempt", "port", "chunk", "is_last")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    IS_LAST_FIELD_NUMBER: _ClassVar[int]
    attempt: Attempt
    port: int
    chunk: Chunk
    is_last: bool
    def __init__(self, attempt: _Optional[_Union[Attempt, _Mapping]] = ..., port: _Optional[int] = ..., chunk: _Optional[_Union[Chunk, _Mapping]] = ..., is_last: bool = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("epoch", "query", "batch", "partition", "attempt")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    query: str
    batch: int
    partition: int
    attempt: int
    def __init__(self, epoch: _Optional[int] = ..., query: _Optional[str] = ..., batch: _Optional[int] = ..., partition: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...

class StageReply(_message.Message):
    __slots__ = ("files",)
    FILES_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[StagedFile]
    def __init__(self, files: _Optional[_Iterable[_Union[StagedFile, _Mapping]]] = ...) -> None: ...

class StagedFile(_message.Message):
    __slots__ = ("port", "name", "bytes", "crc32", "messages", "partition")
    PORT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CRC32_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    port: int
    name: str
    bytes: int
    crc32: int
    messages: int
    partition: int
    def __init__(self, port: _Optional[int] = ..., name: _Optional[str] = ..., bytes: _Optional[int] = ..., crc32: _Optional[int] = ..., messages: _Optional[int] = ..., partition: _Optional[int] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ("epoch", "query", "batch", "files", "offsets")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    query: str
    batch: int
    files: _containers.RepeatedCompositeFieldContainer[StagedFile]
    offsets: str
    def __init__(self, epoch: _Optional[int] = ..., query: _Optional[str] = ..., batch: _Optional[int] = ..., files: _Optional[_Iterable[_Union[StagedFile, _Mapping]]] = ..., offsets: _Optional[str] = ...) -> None: ...

class PublishReply(_message.Message):
    __slots__ = ("is_new",)
    IS_NEW_FIELD_NUMBER: _ClassVar[int]
    is_new: bool
    def __init__(self, is_new: bool = ...) -> None: ...

class DeliverRequest(_message.Message):
    __slots__ = ("opening", "deliveries", "committed")
    OPENING_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    opening: Attempt
    deliveries: Deliveries
    committed: int
    def __init__(self, opening: _Optional[_Union[Attempt, _Mapping]] = ..., deliveries: _Optional[_Union[Deliveries, _Mapping]] = ..., committed: _Optional[int] = ...) -> None: ...

class Deliveries(_message.Message):
    __slots__ = ("items", "arrived", "computed_ms")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ARRIVED_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_MS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Delivery]
    arrived: _containers.RepeatedCompositeFieldContainer[Arrived]
    computed_ms: int
    def __init__(self, items: _Optional[_Iterable[_Union[Delivery, _Mapping]]] = ..., arrived: _Optional[_Iterable[_Union[Arrived, _Mapping]]] = ..., computed_ms: _Optional[int] = ...) -> None: ...

class Arrived(_message.Message):
    __slots__ = ("time_ms", "messages")
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    messages: int
    def __init__(self, time_ms: _Optional[int] = ..., messages: _Optional[int] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ("number", "port", "bucket", "chunk")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    number: int
    port: int
    bucket: int
    chunk: Chunk
    def __init__(self, number: _Optional[int] = ..., port: _Optional[int] = ..., bucket: _Optional[int] = ..., chunk: _Optional[_Union[Chunk, _Mapping]] = ...) -> None: ...

class DeliverReply(_message.Message):
    __slots__ = ("number",)
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    number: int
    def __init__(self, number: _Optional[int] = ...) -> None: ...

class FreshLetter(_message.Message):
    __slots__ = ("id", "letter")
    ID_FIELD_NUMBER: _ClassVar[int]
    LETTER_FIELD_NUMBER: _ClassVar[int]
    id: str
    letter: bytes
    def __init__(self, id: _Optional[str] = ..., letter: _Optional[bytes] = ...) -> None: ...

class ReadStagedRequest(_message.Message):
    __slots__ = ("epoch", "file")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    file: StagedFile
    def __init__(self, epoch: _Optional[int] = ..., file: _Optional[_Union[StagedFile, _Mapping]] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ("epoch", "ports", "offset", "known_letter")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PORTS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    KNOWN_LETTER_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    ports: _containers.RepeatedScalarFieldContainer[int]
    offset: int
    known_letter: int
    def __init__(self, epoch: _Optional[int] = ..., ports: _Optional[_Iterable[int]] = ..., offset: _Optional[int] = ..., known_letter: _Optional[int] = ...) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("document", "end", "backlog_bytes", "waiting_messages", "store", "dead_letters", "published", "delivered", "next_sequence", "last_letter", "letters")
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAITING_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    NEXT_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LAST_LETTER_FIELD_NUMBER: _ClassVar[int]
    LETTERS_FIELD_NUMBER: _ClassVar[int]
    document: str
    end: Position
    backlog_bytes: int
    waiting_messages: int
    store: str
    dead_letters: int
    published: int
    delivered: int
    next_sequence: int
    last_letter: int
    letters: _containers.RepeatedCompositeFieldContainer[FreshLetter]
    def __init__(self, document: _Optional[str] = ..., end: _Optional[_Union[Position, _Mapping]] = ..., backlog_bytes: _Optional[int] = ..., waiting_messages: _Optional[int] = ..., store: _Optional[str] = ..., dead_letters: _Optional[int] = ..., published: _Optional[int] = ..., delivered: _Optional[int] = ..., next_sequence: _Optional[int] = ..., last_letter: _Optional[int] = ..., letters: _Optional[_Iterable[_Union[FreshLetter, _Mapping]]] = ...) -> None: ...
