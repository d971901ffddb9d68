"""Chooses the partition of a key, as the producers of Goka and of Kafka do."""

from wallaroo.message.key import key_bytes

FNV1A, MURMUR2 = "fnv1a", "murmur2"
PARTITIONERS = (FNV1A, MURMUR2)
_MASK = 0xFFFFFFFF


def partition_of(key: str | bytes, count: int, partitioner: str = FNV1A) -> int:
    """Return the partition to which emitters, outputs and tables write records of a key.

    Args:
        key: Key of a record; may be empty.
        count: Number of partitions of the topic.
        partitioner: "fnv1a" as Goka, "murmur2" as Kafka's Java clients.

    Raises:
        ValueError: `partitioner` has another value, or `count` is less than 1.

    Example:
        >>> partition_of("Alice", 8), partition_of("Bob", 8), partition_of("Bob", 8, "murmur2")
        (7, 4, 7)

    Source: Goka, `WithHasher`; FNV-1a is its default.
    """
    if partitioner not in PARTITIONERS or count < 1:
        msg = f"no partition of {count} by {partitioner!r}; there are {' and '.join(PARTITIONERS)}"
        raise ValueError(msg)
    data = key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key_bytes(key)
    if partitioner == MURMUR2:
        return (_murmur2(data) & 0x7FFFFFFF) % count
    signed = _fnv1a(data)
    return abs(signed - (1 << 32) if signed >> 31 else signed) % count


def _fnv1a(data: bytes) -> int:
    digest = 0x811C9DC5
    for byte in data:
        digest = (digest ^ byte) * 0x01000193 & _MASK
    return digest


def _murmur2(data: bytes) -> int:
    """Return MurmurHash2 with the seed of Kafka's clients."""
    digest = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * 0x5BD1E995 & _MASK
        word = (word ^ word >> 24) * 0x5BD1E995 & _MASK
        digest = (digest * 0x5BD1E995 & _MASK) ^ word
    if rest := data[whole:]:
        digest = (digest ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & _MASK
    digest = (digest ^ digest >> 13) * 0x5BD1E995 & _MASK
    return digest ^ digest >> 15
