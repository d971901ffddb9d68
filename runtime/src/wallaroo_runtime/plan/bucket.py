"""Chooses bucket ids that Spark spreads evenly over the partitions of a shuffle.

Spark sends a row to partition pmod(murmur3(key, 42), partitions). The hashes of 0, 1, 2, ... are not even over few
partitions. So the id of each bucket is an integer whose hash leads to the wanted partition.
"""

SEED = 42
BUCKETS_PER_PARTITION = 4  # for a new checkpoint with micro-batches
_MASK = 0xFFFFFFFF


def murmur3(value: int) -> int:
    """Return Spark's hash of an INT column's value: Murmur3 x86 32-bit over its four bytes, as a signed integer."""
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = (k << 15 | k >> 17) & _MASK
    h = SEED ^ (k * 0x1B873593 & _MASK)
    h = (h << 13 | h >> 19) & _MASK
    h = (h * 5 + 0xE6546B64 & _MASK) ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def partition_of(value: int, partitions: int) -> int:
    """Return the shuffle partition to which Spark sends a row whose key is the INT `value`."""
    return murmur3(value) % partitions


def bucket_ids(partitions: int, per_partition: int) -> tuple[int, ...]:
    """Choose an id for each bucket so that bucket b goes to partition b % partitions.

    The ids are the smallest such non-negative integers, so they depend on the two numbers alone.

    Raises:
        ValueError: One of the two numbers is less than 1.

    Example:
        >>> [partition_of(value, 3) for value in bucket_ids(3, 2)]
        [0, 1, 2, 0, 1, 2]
    """
    if partitions < 1 or per_partition < 1:
        reason = f"{partitions} partitions of {per_partition} buckets; both must be at least 1"
        raise ValueError(reason)
    ids_of: list[list[int]] = [[] for _ in range(partitions)]
    missing, candidate = partitions * per_partition, 0
    while missing:
        ids = ids_of[partition_of(candidate, partitions)]
        if len(ids) < per_partition:
            ids.append(candidate)
            missing -= 1
        candidate += 1
    return tuple(ids[row] for row in range(per_partition) for ids in ids_of)
