from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_KIND_UNSPECIFIED: _ClassVar[NodeKind]
    NODE_KIND_SOURCE: _ClassVar[NodeKind]
    NODE_KIND_COMPUTATION: _ClassVar[NodeKind]
    NODE_KIND_COMPUTATION_MULTI: _ClassVar[NodeKind]
    NODE_KIND_STATE_COMPUTATION: _ClassVar[NodeKind]
    NODE_KIND_STATE_COMPUTATION_MULTI: _ClassVar[NodeKind]
    NODE_KIND_KEY: _ClassVar[NodeKind]
    NODE_KIND_SINK: _ClassVar[NodeKind]
    NODE_KIND_KEY_BY: _ClassVar[NodeKind]
    NODE_KIND_COLLECT: _ClassVar[NodeKind]
    NODE_KIND_WINDOW: _ClassVar[NodeKind]
    NODE_KIND_SEND: _ClassVar[NodeKind]
    NODE_KIND_RECEIVE: _ClassVar[NodeKind]
    NODE_KIND_OUTPUT: _ClassVar[NodeKind]
NODE_KIND_UNSPECIFIED: NodeKind
NODE_KIND_SOURCE: NodeKind
NODE_KIND_COMPUTATION: NodeKind
NODE_KIND_COMPUTATION_MULTI: NodeKind
NODE_KIND_STATE_COMPUTATION: NodeKind
NODE_KIND_STATE_COMPUTATION_MULTI: NodeKind
NODE_KIND_KEY: NodeKind
NODE_KIND_SINK: NodeKind
NODE_KIND_KEY_BY: NodeKind
NODE_KIND_COLLECT: NodeKind
NODE_KIND_WINDOW: NodeKind
NODE_KIND_SEND: NodeKind
NODE_KIND_RECEIVE: NodeKind
NODE_KIND_OUTPUT: NodeKind

class InitRequest(_message.Message):
    __slots__ = ("protocol_min", "interface_hash", "protocol_max", "capabilities")
    PROTOCOL_MIN_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_HASH_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MAX_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    protocol_min: int
    interface_hash: str
    protocol_max: int
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, protocol_min: _Optional[int] = ..., interface_hash: _Optional[str] = ..., protocol_max: _Optional[int] = ..., capabilities: _Optional[_Iterable[str]] = ...) -> None: ...

class InitReply(_message.Message):
    __slots__ = ("protocol_min", "language", "interface_hash", "endpoints", "process_id", "failure", "protocol_max", "capabilities")
    PROTOCOL_MIN_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_HASH_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_MAX_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    protocol_min: int
    language: str
    interface_hash: str
    endpoints: _containers.RepeatedScalarFieldContainer[str]
    process_id: int
    failure: Failure
    protocol_max: int
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, protocol_min: _Optional[int] = ..., language: _Optional[str] = ..., interface_hash: _Optional[str] = ..., endpoints: _Optional[_Iterable[str]] = ..., process_id: _Optional[int] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., protocol_max: _Optional[int] = ..., capabilities: _Optional[_Iterable[str]] = ...) -> None: ...

class Stage(_message.Message):
    __slots__ = ("id", "nodes", "bucket_count", "frame_bytes")
    ID_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    BUCKET_COUNT_FIELD_NUMBER: _ClassVar[int]
    FRAME_BYTES_FIELD_NUMBER: _ClassVar[int]
    id: str
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    bucket_count: int
    frame_bytes: int
    def __init__(self, id: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., bucket_count: _Optional[int] = ..., frame_bytes: _Optional[int] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("path", "kind", "inputs", "port", "state", "state_port", "timestamps", "codec", "component", "keys", "output", "counters", "ttl_ms", "event_time", "timers", "sessions", "watermarks", "arrival", "visits")
    PATH_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_PORT_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMPS_FIELD_NUMBER: _ClassVar[int]
    CODEC_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIME_FIELD_NUMBER: _ClassVar[int]
    TIMERS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    WATERMARKS_FIELD_NUMBER: _ClassVar[int]
    ARRIVAL_FIELD_NUMBER: _ClassVar[int]
    VISITS_FIELD_NUMBER: _ClassVar[int]
    path: str
    kind: NodeKind
    inputs: _containers.RepeatedScalarFieldContainer[str]
    port: int
    state: str
    state_port: int
    timestamps: bool
    codec: str
    component: str
    keys: bool
    output: str
    counters: _containers.RepeatedScalarFieldContainer[str]
    ttl_ms: int
    event_time: bool
    timers: _containers.RepeatedScalarFieldContainer[str]
    sessions: bool
    watermarks: bool
    arrival: bool
    visits: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, path: _Optional[str] = ..., kind: _Optional[_Union[NodeKind, str]] = ..., inputs: _Optional[_Iterable[str]] = ..., port: _Optional[int] = ..., state: _Optional[str] = ..., state_port: _Optional[int] = ..., timestamps: bool = ..., codec: _Optional[str] = ..., component: _Optional[str] = ..., keys: bool = ..., output: _Optional[str] = ..., counters: _Optional[_Iterable[str]] = ..., ttl_ms: _Optional[int] = ..., event_time: bool = ..., timers: _Optional[_Iterable[str]] = ..., sessions: bool = ..., watermarks: bool = ..., arrival: bool = ..., visits: _Optional[_Iterable[str]] = ...) -> None: ...

class Opening(_message.Message):
    __slots__ = ("application", "query", "stage", "batch", "partition", "attempt", "in_flight")
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    application: str
    query: str
    stage: Stage
    batch: int
    partition: int
    attempt: int
    in_flight: str
    def __init__(self, application: _Optional[str] = ..., query: _Optional[str] = ..., stage: _Optional[_Union[Stage, _Mapping]] = ..., batch: _Optional[int] = ..., partition: _Optional[int] = ..., attempt: _Optional[int] = ..., in_flight: _Optional[str] = ...) -> None: ...

class Skip(_message.Message):
    __slots__ = ("ordinal", "code", "reason")
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ordinal: int
    code: str
    reason: str
    def __init__(self, ordinal: _Optional[int] = ..., code: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("opening", "bucket", "log", "data")
    OPENING_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    opening: Opening
    bucket: Bucket
    log: StateLog
    data: Data
    def __init__(self, opening: _Optional[_Union[Opening, _Mapping]] = ..., bucket: _Optional[_Union[Bucket, _Mapping]] = ..., log: _Optional[_Union[StateLog, _Mapping]] = ..., data: _Optional[_Union[Data, _Mapping]] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("need_state", "output", "change", "done", "failure", "released")
    NEED_STATE_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    RELEASED_FIELD_NUMBER: _ClassVar[int]
    need_state: NeedState
    output: Output
    change: StateChange
    done: Done
    failure: Failure
    released: Released
    def __init__(self, need_state: _Optional[_Union[NeedState, _Mapping]] = ..., output: _Optional[_Union[Output, _Mapping]] = ..., change: _Optional[_Union[StateChange, _Mapping]] = ..., done: _Optional[_Union[Done, _Mapping]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., released: _Optional[_Union[Released, _Mapping]] = ...) -> None: ...

class Data(_message.Message):
    __slots__ = ("index", "frames", "skips", "alone")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    SKIPS_FIELD_NUMBER: _ClassVar[int]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    index: int
    frames: bytes
    skips: _containers.RepeatedCompositeFieldContainer[Skip]
    alone: bool
    def __init__(self, index: _Optional[int] = ..., frames: _Optional[bytes] = ..., skips: _Optional[_Iterable[_Union[Skip, _Mapping]]] = ..., alone: bool = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("index", "port", "bucket", "frame")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    index: int
    port: int
    bucket: int
    frame: bytes
    def __init__(self, index: _Optional[int] = ..., port: _Optional[int] = ..., bucket: _Optional[int] = ..., frame: _Optional[bytes] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("index", "nonce", "snapshot", "keys", "counts", "visits")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    VISITS_FIELD_NUMBER: _ClassVar[int]
    index: int
    nonce: int
    snapshot: bool
    keys: int
    counts: _containers.RepeatedCompositeFieldContainer[StepCount]
    visits: _containers.RepeatedCompositeFieldContainer[Visited]
    def __init__(self, index: _Optional[int] = ..., nonce: _Optional[int] = ..., snapshot: bool = ..., keys: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[StepCount, _Mapping]]] = ..., visits: _Optional[_Iterable[_Union[Visited, _Mapping]]] = ...) -> None: ...

class StepCount(_message.Message):
    __slots__ = ("path", "messages_in", "messages_out", "dead_letters", "more")
    class MoreEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PATH_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_IN_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_OUT_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    path: str
    messages_in: int
    messages_out: int
    dead_letters: int
    more: _containers.ScalarMap[str, int]
    def __init__(self, path: _Optional[str] = ..., messages_in: _Optional[int] = ..., messages_out: _Optional[int] = ..., dead_letters: _Optional[int] = ..., more: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Version(_message.Message):
    __slots__ = ("counter", "nonce")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    counter: int
    nonce: int
    def __init__(self, counter: _Optional[int] = ..., nonce: _Optional[int] = ...) -> None: ...

class Bucket(_message.Message):
    __slots__ = ("index", "bucket", "version", "frames", "more", "wants_snapshot", "skips", "alone", "careful", "release")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    WANTS_SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    SKIPS_FIELD_NUMBER: _ClassVar[int]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    CAREFUL_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    index: int
    bucket: int
    version: Version
    frames: bytes
    more: bool
    wants_snapshot: bool
    skips: _containers.RepeatedCompositeFieldContainer[Skip]
    alone: bool
    careful: bool
    release: bool
    def __init__(self, index: _Optional[int] = ..., bucket: _Optional[int] = ..., version: _Optional[_Union[Version, _Mapping]] = ..., frames: _Optional[bytes] = ..., more: bool = ..., wants_snapshot: bool = ..., skips: _Optional[_Iterable[_Union[Skip, _Mapping]]] = ..., alone: bool = ..., careful: bool = ..., release: bool = ...) -> None: ...

class StateLog(_message.Message):
    __slots__ = ("index", "entries", "more")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    index: int
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    more: bool
    def __init__(self, index: _Optional[int] = ..., entries: _Optional[_Iterable[bytes]] = ..., more: bool = ...) -> None: ...

class Released(_message.Message):
    __slots__ = ("index",)
    INDEX_FIELD_NUMBER: _ClassVar[int]
    index: int
    def __init__(self, index: _Optional[int] = ...) -> None: ...

class NeedState(_message.Message):
    __slots__ = ("index", "rollback")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ROLLBACK_FIELD_NUMBER: _ClassVar[int]
    index: int
    rollback: bool
    def __init__(self, index: _Optional[int] = ..., rollback: bool = ...) -> None: ...

class StateChange(_message.Message):
    __slots__ = ("index", "entries")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    index: int
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, index: _Optional[int] = ..., entries: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Visit(_message.Message):
    __slots__ = ("id", "name", "metadata")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    id: int
    name: str
    metadata: bytes
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., metadata: _Optional[bytes] = ...) -> None: ...

class Visited(_message.Message):
    __slots__ = ("id", "path", "keys", "failed")
    ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    id: int
    path: str
    keys: int
    failed: int
    def __init__(self, id: _Optional[int] = ..., path: _Optional[str] = ..., keys: _Optional[int] = ..., failed: _Optional[int] = ...) -> None: ...

class SplitRequest(_message.Message):
    __slots__ = ("path", "data", "max_message_bytes")
    PATH_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    path: str
    data: bytes
    max_message_bytes: int
    def __init__(self, path: _Optional[str] = ..., data: _Optional[bytes] = ..., max_message_bytes: _Optional[int] = ...) -> None: ...

class SplitReply(_message.Message):
    __slots__ = ("lengths", "wanted_bytes", "failure")
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    WANTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    lengths: _containers.RepeatedScalarFieldContainer[int]
    wanted_bytes: int
    failure: Failure
    def __init__(self, lengths: _Optional[_Iterable[int]] = ..., wanted_bytes: _Optional[int] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class GenerateRequest(_message.Message):
    __slots__ = ("path", "previous", "begins", "max_count", "max_bytes", "previous_encoding")
    PATH_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    MAX_COUNT_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_ENCODING_FIELD_NUMBER: _ClassVar[int]
    path: str
    previous: bytes
    begins: bool
    max_count: int
    max_bytes: int
    previous_encoding: int
    def __init__(self, path: _Optional[str] = ..., previous: _Optional[bytes] = ..., begins: bool = ..., max_count: _Optional[int] = ..., max_bytes: _Optional[int] = ..., previous_encoding: _Optional[int] = ...) -> None: ...

class GenerateReply(_message.Message):
    __slots__ = ("encoding", "values", "ended", "failure")
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    encoding: int
    values: _containers.RepeatedScalarFieldContainer[bytes]
    ended: bool
    failure: Failure
    def __init__(self, encoding: _Optional[int] = ..., values: _Optional[_Iterable[bytes]] = ..., ended: bool = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class ShowStateRequest(_message.Message):
    __slots__ = ("stage", "entries")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    stage: Stage
    entries: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, stage: _Optional[_Union[Stage, _Mapping]] = ..., entries: _Optional[_Iterable[bytes]] = ...) -> None: ...

class ShowStateReply(_message.Message):
    __slots__ = ("states", "failure")
    STATES_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[ShownState]
    failure: Failure
    def __init__(self, states: _Optional[_Iterable[_Union[ShownState, _Mapping]]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ...) -> None: ...

class ShownState(_message.Message):
    __slots__ = ("port", "key", "json")
    PORT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    port: int
    key: bytes
    json: bytes
    def __init__(self, port: _Optional[int] = ..., key: _Optional[bytes] = ..., json: _Optional[bytes] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("code", "message", "retriable", "traceback", "fix", "pointer", "file", "line")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRIABLE_FIELD_NUMBER: _ClassVar[int]
    TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    FIX_FIELD_NUMBER: _ClassVar[int]
    POINTER_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    code: str
    message: str
    retriable: bool
    traceback: str
    fix: str
    pointer: str
    file: str
    line: int
    def __init__(self, code: _Optional[str] = ..., message: _Optional[str] = ..., retriable: bool = ..., traceback: _Optional[str] = ..., fix: _Optional[str] = ..., pointer: _Optional[str] = ..., file: _Optional[str] = ..., line: _Optional[int] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("code", "path", "step", "key", "has_key", "sequence", "port", "input", "encoding", "preview", "error", "traceback", "timestamp_ms", "origin")
    CODE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    HAS_KEY_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    ENCODING_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    code: str
    path: str
    step: str
    key: bytes
    has_key: bool
    sequence: int
    port: int
    input: bytes
    encoding: int
    preview: str
    error: str
    traceback: str
    timestamp_ms: int
    origin: Origin
    def __init__(self, code: _Optional[str] = ..., path: _Optional[str] = ..., step: _Optional[str] = ..., key: _Optional[bytes] = ..., has_key: bool = ..., sequence: _Optional[int] = ..., port: _Optional[int] = ..., input: _Optional[bytes] = ..., encoding: _Optional[int] = ..., preview: _Optional[str] = ..., error: _Optional[str] = ..., traceback: _Optional[str] = ..., timestamp_ms: _Optional[int] = ..., origin: _Optional[_Union[Origin, _Mapping]] = ...) -> None: ...

class Origin(_message.Message):
    __slots__ = ("source", "topic", "partition", "offset", "key")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    source: str
    topic: str
    partition: int
    offset: int
    key: bytes
    def __init__(self, source: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., key: _Optional[bytes] = ...) -> None: ...
