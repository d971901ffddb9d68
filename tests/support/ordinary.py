"""An ordinary user in this thread: paths of another user are refused, also if the tests run as root."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STRANGER = 12345  # a user who owns nothing else
_VERSION = 0x20080522  # of the structures below, from linux/capability.h
_OVERRIDES = 1 << 1 | 1 << 2 | 1 << 3  # DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER


def close(path: Path) -> None:
    """Give a path to another user, so that it is refused to us. Without root take away all permissions instead."""
    if os.getuid() == 0:
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.chown(path, STRANGER, STRANGER)
    else:
        path.chmod(0)


@contextmanager
def ordinary() -> Iterator[None]:
    """Take root's power over all files from this thread, until the end of the block."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0, os.strerror(ctypes.get_errno())
    before = sets[0]  # the effective ones
    try:
        sets[0] = before & ~_OVERRIDES
        assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())
        yield
    finally:
        sets[0] = before
        assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())
