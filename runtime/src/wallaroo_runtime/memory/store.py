"""Stores the states of all buckets in memory: for each bucket the log of changes, and its version."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from wallaroo.goka.state import GroupState
from wallaroo_runtime.memory.calls import CallResult, Version
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.plan.plan import STATE_ENTRIES
from wallaroo_runtime.storage.state_log import latest_states

# A Go worker writes a message of protobuf as a mark, the length of the message's name, the name, and the message.
PROTOBUF_MARK = 0x48
GROUP_STATE = b"wallaroo.record.v1.GroupState"
TIMES_BYTES = 19  # with a ttl the key's times precede the state
Place = tuple[str, int]  # id of the stage, bucket
LARGE_LOG_BYTES = 256 * 1024 * 1024  # limit for changes, since a log is one value of RocksDB
SMALL_LOG_BYTES = 256 * 1024  # changes up to this size are not worth a snapshot
GOLDEN_RATIO = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class BucketLog:
    """The log of one bucket, from which a worker can build the bucket's state.

    Attributes:
        entries: Entries of the log, oldest first.
        snapshot_bytes: Size of the entries of the last snapshot.
        change_bytes: Size of the entries after the snapshot.
    """

    version: Version = field(default_factory=Version)
    entries: tuple[bytes, ...] = ()
    snapshot_bytes: int = 0
    change_bytes: int = 0

    def after(self, result: CallResult) -> "BucketLog":
        """Return the log after a call: with its changes added, or only with its snapshot if it made one."""
        changes, size = tuple(result.changes), sum(map(len, result.changes))
        if result.is_snapshot:
            return BucketLog(result.version, changes, size)
        entries = self.entries + changes
        return replace(self, version=result.version, entries=entries, change_bytes=self.change_bytes + size)


class LogStore:
    """The logs of all buckets. Changes of a micro-batch count when the micro-batch is committed.

    Args:
        small_log_bytes: The largest size of changes for which a log needs no snapshot.

    Example:
        >>> store, size = LogStore(), 1_000_000
        >>> [store.wants_snapshot(0, BucketLog(snapshot_bytes=size, change_bytes=each)) for each in (size, size + 1)]
        [False, True]
    """

    def __init__(self, small_log_bytes: int = SMALL_LOG_BYTES) -> None:
        self._small_log_bytes = small_log_bytes
        self._committed: dict[Place, BucketLog] = {}
        self._changed: dict[Place, BucketLog] = {}

    def log(self, stage: str, bucket: int) -> BucketLog:
        """Return the log of a bucket, with the changes of the micro-batch in progress."""
        key = stage, bucket
        return self._changed.get(key) or self._committed.get(key) or BucketLog()

    def wants_snapshot(self, bucket: int, log: BucketLog) -> bool:
        """Say whether a log needs a snapshot, because its changes are larger than the last snapshot.

        The changes may be 1 to 2 times as large, by bucket. Buckets grow at the same rate, so with one ratio for all,
        one micro-batch would write all states of an application.
        """
        most = min(log.snapshot_bytes * (1 + bucket * GOLDEN_RATIO % 1), LARGE_LOG_BYTES)
        return log.change_bytes > max(most, self._small_log_bytes)

    def put(self, stage: str, bucket: int, log: BucketLog) -> None:
        """Replace the log of a bucket, in the micro-batch in progress."""
        self._changed[stage, bucket] = log

    def commit(self) -> None:
        """Commit the changes of the micro-batch in progress."""
        self._committed.update(self._changed)
        self._changed = {}

    def roll_back(self) -> None:
        """Forget the changes of the micro-batch in progress."""
        self._changed = {}

    def logs(self, stage: str) -> Iterator[tuple[bytes, ...]]:
        """Yield the committed log entries of each bucket of a stage."""
        for (stage_id, _), log in self._committed.items():
            if stage_id == stage:
                yield log.entries


def read_states(plan: Plan, store: LogStore, name: str) -> dict[bytes, tuple[int, bytes]]:
    """Return, for the state `name`, encoding and bytes of each key's committed state."""
    of_ports: dict[bytes, tuple[int, bytes]] = {}
    for stage in plan.stages:
        ports = {node.state_port for node in stage.nodes if node.kind in STATE_ENTRIES and node.state == name}
        for entries in store.logs(stage.id) if ports else ():
            states = latest_states(entries)
            of_ports.update({key: value for (port, key), value in states.items() if port in ports})
    return of_ports


def foreign_state(data: bytes) -> GroupState | bytes:
    """Return a state that a program in another language has written: a `GroupState` of a Goka group, else bytes."""
    mark = bytes([PROTOBUF_MARK, len(GROUP_STATE)]) + GROUP_STATE
    start = next((at + len(mark) for at in (0, TIMES_BYTES) if data.startswith(mark, at)), 0)
    return GroupState.from_bytes(data[start:]) if start else data


def state_names(plan: Plan) -> list[str]:
    """Return the names of the states of a plan."""
    return sorted({node.state for stage in plan.stages for node in stage.nodes if node.kind in STATE_ENTRIES})
