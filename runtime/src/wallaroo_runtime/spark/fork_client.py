"""Stands for a process of Spark that is a fork of `fork_server`: Java sees its input, output and end.

Started as `python -I -S fork_client.py SOCKET PYTHON -m MODULE ...`, without a library of ours, in milliseconds. When
the server does not answer, this process becomes what was asked for.
"""

import os
import signal
import socket
import struct
import sys

STANDARD = (0, 1, 2)
LENGTH, STATUS = struct.Struct(">I"), struct.Struct(">i")
TAKEN = b"t"


def request(arguments: list[str]) -> bytes:
    """Return what the server needs besides the three descriptors."""
    variables = [name + b"=" + value for name, value in os.environb.items()]
    head = (os.fsencode(os.getcwd()), str(len(arguments)).encode(), *map(os.fsencode, arguments))
    content = b"\0".join((*head, *variables))
    return LENGTH.pack(len(content)) + content


def main() -> None:
    """Let the server fork, and wait for the end of that process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Java ignores it, and ends its processes with it
    _, path, python, *arguments = sys.argv
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        content = request(arguments[1:])
        sent = socket.send_fds(connection, [content], STANDARD)
        connection.sendall(content[sent:])
        is_taken = connection.recv(1) == TAKEN
    except OSError:
        is_taken = False
    if not is_taken:
        os.execv(python, [python, *arguments])
    status = connection.recv(STATUS.size, socket.MSG_WAITALL)
    os._exit(STATUS.unpack(status)[0] & 0xFF if len(status) == STATUS.size else 1)


if __name__ == "__main__":
    main()
