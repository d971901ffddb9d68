"""Decides when to compact the log of a bucket. A compacted log has the whole state in place of changes."""

LARGE_LOG_BYTES = 256 * 1024 * 1024  # limit for changes, since a log is one value of RocksDB
SMALL_LOG_BYTES = 256 * 1024  # changes up to this size are not worth a snapshot
GOLDEN_RATIO = 0.6180339887498949


def compaction_ratio(bucket: int) -> float:
    """Return the ratio of changes to snapshot at which the log of a bucket is compacted: 1 to 2, by bucket.

    Buckets grow at the same rate. With one ratio for all, one micro-batch would write all states of an application.
    """
    return 1 + bucket * GOLDEN_RATIO % 1


def is_due(bucket: int, snapshot_bytes: int, change_bytes: int, small_bytes: int = SMALL_LOG_BYTES) -> bool:
    """Return whether a log must be compacted.

    Args:
        bucket: Number of the bucket.
        snapshot_bytes: Size of the state when it was last written whole.
        change_bytes: Size of the changes since then.
        small_bytes: Changes up to this size are not worth a snapshot.

    Example:
        >>> is_due(0, snapshot_bytes=1_000_000, change_bytes=900_000), is_due(0, 1_000_000, 1_100_000)
        (False, True)
    """
    most = min(snapshot_bytes * compaction_ratio(bucket), LARGE_LOG_BYTES)
    return change_bytes > max(most, small_bytes)
