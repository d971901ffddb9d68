"""The sockets at which processes listen, from `/proc`, whatever network they are in."""

import codecs
import ctypes
import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path

LISTENS, ACCEPTS = "0A", 0x10000  # as the kernel writes them, of TCP and of Unix sockets
LOOKS = 3  # the kernel leaves out sockets while others come and go
NOBODY, ANSWER_S, REST_S, ANSWER_BYTES = 65534, 2.0, 0.3, 1 << 16
CLOSED, SILENT = b"closed", b"silent"  # in place of an answer


@dataclass(frozen=True)
class Listener:
    """A socket at which a process listens.

    Attributes:
        pid: One process that has it.
        command: Its command line, with blanks.
        address: HOST:PORT, or the path of a Unix socket; `@` begins an abstract one.
    """

    pid: int
    command: str
    address: str

    @property
    def is_unix(self) -> bool:
        """Whether it is a Unix socket."""
        return self.address.startswith(("/", "@")) or not self.address

    @property
    def target(self) -> tuple[str, int]:
        """Return host and port of TCP."""
        host, _, port = self.address.rpartition(":")
        return host, int(port)

    def is_closed_to_others(self) -> bool:
        """Say whether the modes of a Unix socket and its directories let only its user connect."""
        if not self.address.startswith("/"):
            return False
        place, root = Path(self.address), Path(f"/proc/{self.pid}/root")
        if self.address.startswith("/proc/self/fd/"):  # of a directory that is closed by now, of a gateway or egress
            _, _, module, checkpoint, _ = self.command.split()
            place = Path(checkpoint, module.rpartition(".")[2], "socket")
        at = root / place.relative_to("/")
        closed = [path for path in at.parents if path.is_relative_to(root) and not path.stat().st_mode & stat.S_IXOTH]
        return bool(closed) or (at.exists() and not at.stat().st_mode & stat.S_IWOTH)


def processes_with(mark: str) -> list[int]:
    """Return the processes whose environment has a text, as all have that inherit a variable."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def listeners_of(pids: list[int]) -> list[Listener]:
    """Return where processes listen, each socket once."""
    found = dict[int, Listener]()
    for pid in pids * LOOKS:
        with suppress(OSError):
            for inode, listener in _own(pid):
                found.setdefault(inode, listener)
    return list(found.values())


def _own(pid: int) -> Iterator[tuple[int, Listener]]:
    process = Path(f"/proc/{pid}")
    command = process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    own = set[int]()
    for link in process.joinpath("fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile, as files of a busy process are
            if (target := os.readlink(link)).startswith("socket:["):
                own.add(int(target[len("socket:[") : -1]))
    return ((inode, Listener(pid, command, address)) for inode, address in _listening(process / "net") if inode in own)


def _listening(net: Path) -> Iterator[tuple[int, str]]:
    for table in ("tcp", "tcp6"):
        for line in net.joinpath(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS:
                yield int(fields[9]), _address(fields[1])
    for line in net.joinpath("unix").read_text().splitlines()[1:]:
        _, _, _, flags, _, _, inode, *path = line.split(maxsplit=7)
        if int(flags, 16) & ACCEPTS:
            yield int(inode), "".join(path)


def _address(text: str) -> str:
    """Return HOST:PORT for the kernel's hexadecimal, words of four bytes in the machine's order."""
    host, _, port = text.rpartition(":")
    words = (int(host[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(host), 8))
    address = ip_address(b"".join(words))
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return f"{mapped or address}:{int(port, 16)}"


def as_stranger(listener: Listener, question: bytes) -> bytes:
    """Ask a question as another user, in the network of the process that listens; returns what it answers, and how.

    Without the rights of root it is asked as this user, which has no secret of the run's either.
    """
    codecs.lookup("idna")  # for names of hosts; the other user may not read this module
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            _become_stranger(listener.pid)
            os.write(writer, _asked(listener.target, question))
        except BaseException as error:
            os.write(writer, b"failed: " + repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    return answer


def _become_stranger(pid: int) -> None:
    network = Path(f"/proc/{pid}/ns/net")
    if os.readlink(network) != os.readlink("/proc/self/ns/net"):
        with open(network, "rb") as space:
            assert ctypes.CDLL(None, use_errno=True).setns(space.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def _asked(target: tuple[str, int], question: bytes) -> bytes:
    with socket.create_connection(target, timeout=ANSWER_S) as connection:
        connection.sendall(question)
        answer = b""
        try:
            while piece := connection.recv(ANSWER_BYTES):  # a server may write head and body of an answer apart
                answer += piece
                connection.settimeout(REST_S)
        except ConnectionError:
            return answer or CLOSED
        except TimeoutError:
            return answer or SILENT
        return answer or CLOSED
