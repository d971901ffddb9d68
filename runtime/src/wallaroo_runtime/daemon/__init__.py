"""What the processes beside the driver share: durable small files, a status file, the watch over their driver."""

from wallaroo_runtime.daemon.config import read_config
from wallaroo_runtime.daemon.driver import DriverWatch
from wallaroo_runtime.daemon.file import NO_ROOM, refuse_links, replace_file, sync_directory, sync_file
from wallaroo_runtime.daemon.line import pack_line, unpack_line
from wallaroo_runtime.daemon.status import StatusFile

__all__ = [
    "NO_ROOM",
    "DriverWatch",
    "StatusFile",
    "pack_line",
    "read_config",
    "refuse_links",
    "replace_file",
    "sync_directory",
    "sync_file",
    "unpack_line",
]
