"""Keeps the states of buckets in memory between calls, within a limit of bytes."""

import threading
from collections import OrderedDict

from wallaroo.worker.bucket.state import BucketKey, BucketState, Version


class StateCache:
    """Keeps copies of buckets' states. If they exceed a limit, drops the least recently used copies.

    A call takes its copy out of the cache, so that two calls never change the same copy.

    Args:
        limit_bytes: Approximate limit of the memory of all copies together.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit, self._total = limit_bytes, 0
        self._copies: OrderedDict[BucketKey, tuple[Version, BucketState, int]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: BucketKey, version: Version) -> BucketState | None:
        """Remove the copy of a bucket's states. Return the copy if it has this version, else None."""
        with self._lock:
            copy = self._copies.pop(key, None)
            if copy is None:
                return None
            self._total -= copy[2]
            return copy[1] if copy[0] == version else None

    def file(self, key: BucketKey, version: Version, state: BucketState) -> None:
        """Keep a copy after a call, under its new version."""
        cost = state.cost()
        with self._lock:
            old = self._copies.pop(key, None)
            self._total += cost - (old[2] if old else 0)
            self._copies[key] = (version, state, cost)
            while self._total > self._limit and self._copies:
                self._total -= self._copies.popitem(last=False)[1][2]
