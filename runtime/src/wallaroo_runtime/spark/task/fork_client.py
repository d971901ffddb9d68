"""Stands for a process of Spark that is a fork of `fork_server`: Java sees its input, output and end.

Started as `python -I -S fork_client.py SOCKET PYTHON -m MODULE ...`, without a library of ours, in milliseconds. It
becomes a shell that waits for the end of the fork: that has 1 MB in memory instead of 4. When the server does not
answer, it becomes what was asked for.
"""

import os
import signal
import socket
import struct
import sys

STANDARD = (0, 1, 2)
LENGTH = struct.Struct(">I")
TAKEN = b"t"
SHELL, WAIT = "/bin/sh", 'read -r status && exit "$status"; exit 1'


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
    os.dup2(connection.fileno(), STANDARD[0])
    os.execv(SHELL, [SHELL, "-c", WAIT, *arguments])


if __name__ == "__main__":
    main()
