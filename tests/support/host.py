"""Hosts of a test: each has an address and a directory of its own, and sees nothing of the others but what is shared.

A host is a network and a mount namespace. All of them lie in one user, process and network namespace, which ends with
the test's process: nothing is left over, and nothing gets out. Where the system makes no namespaces, or there is no
`ip`, hosts are addresses of loopback and directories that the others could see; the tests are the same.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.run import TESTS

SCENE = Path(__file__).with_name("scene.py")
START_S = 120.0
# Without namespaces each process of pytest has its own part of loopback.
NETWORK, LOOPBACK = "10.0.0", f"127.0.{os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw')}"
SENDERS = 1  # the number of the test's own host, where senders and receivers are
SPACES = ("--net", "--mount", "--pid", "--fork", "--mount-proc")
INSTALLED = (TESTS.parent, Path(sys.prefix), Path(sys.base_prefix))
BRIDGE = """
ip link set lo up
ip link add bridge type bridge
ip address add {network}.{number}/24 dev bridge
ip link set bridge up
"""
# The other end of the cable is in the namespace of the first process of ours.
CABLE = """
ip link set lo up
ip link add eth0 type veth peer name cable{number} netns 1
ip address add {network}.{number}/24 dev eth0
ip link set eth0 up
mount -t tmpfs none /mnt
keep() {{ mkdir -p "/mnt$2"; mount --rbind "$2" "/mnt$2"; mount -o "remount,bind,$1" "/mnt$2"; }}
{shown}
mount --rbind "/mnt{hidden}" "{hidden}"
umount -R /mnt
mount -t tmpfs none /dev/shm
mount -o remount,bind,ro /
echo ready
exec sleep infinity
"""


@dataclass(frozen=True)
class Host:
    """A machine.

    Attributes:
        name: Of its directory, too.
        address: Where others reach it.
        folder: What is its own; all that it sees besides the installation and what is shared with it.
        entry: Goes before a command that shall run there.
    """

    name: str
    address: str
    folder: Path
    entry: tuple[object, ...]

    def environment(self) -> dict[str, str]:
        """Return variables with which nothing is written outside the host's directory."""
        return {
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "SPARK_LOCAL_DIRS": str(self.folder / "spark"),
            "SPARK_LOCAL_IP": self.address,
        }

    def run(self, *command: object, seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            list(map(str, (*self.entry, *command))), capture_output=True, text=True, timeout=seconds, check=False,
            env=os.environ | self.environment(),
        )  # fmt: skip


class Scene:
    """Hosts and the network between them.

    Args:
        folder: Empty; hosts get their directories here.
        path: Where `ip` and `unshare` are looked for.

    Attributes:
        why: Why hosts are addresses of loopback; empty: they are namespaces.
    """

    def __init__(self, folder: Path, path: str | None = None) -> None:
        self.folder, self.hosts = folder.resolve(), list[Host]()
        self._stack = contextlib.ExitStack()
        self._process, self.why = 0, ""
        tools = [shutil.which(tool, path=path) for tool in ("ip", "unshare")]
        if not all(tools):
            self.why = "there is no `ip` (Debian: iproute2) or no `unshare`"
        elif not any(self._open(spaces) for spaces in (("--user", "--map-root-user"), ())):
            self.why = "the system makes no namespaces"
        self.network = LOOPBACK if self.why else NETWORK

    def _open(self, spaces: Sequence[str]) -> bool:
        """Make the outer namespaces; say whether that was possible."""
        mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = ["unshare", *spaces, *SPACES, sys.executable, str(SCENE), "serve", str(other.fileno())]
        process = subprocess.Popen(command, pass_fds=[other.fileno()], stderr=subprocess.DEVNULL)
        other.close()
        with contextlib.ExitStack() as stack:
            stack.callback(process.wait, START_S)
            stack.callback(mine.close)
            if not self._serves(mine):
                return False
            (self._process,) = descendants(process.pid)
            script = BRIDGE.format(network=NETWORK, number=SENDERS)
            if self._run_in(self._process, "sh", "-ec", script).returncode:
                return False
            self._control = mine
            self._stack = stack.pop_all()
        return True

    def _serves(self, control: socket.socket) -> bool:
        control.settimeout(START_S)
        try:
            control.send(json.dumps(["listen", "", 0]).encode())
            _, descriptors, _, _ = socket.recv_fds(control, 4096, 1)
        except ConnectionError:
            return False
        for descriptor in descriptors:
            os.close(descriptor)
        return bool(descriptors)

    def _run_in(self, process: int, *command: str) -> subprocess.CompletedProcess[str]:
        entry = [sys.executable, str(SCENE), "enter", str(process), "/"]
        return subprocess.run([*entry, *command], capture_output=True, text=True, timeout=START_S, check=False)

    def add(self, name: str, *shared: Path) -> Host:
        """Switch on a host.

        Args:
            name: Of no other host.
            shared: Directories of others that it sees, too.
        """
        number = len(self.hosts) + 1 + SENDERS
        home = self.folder / name
        home.mkdir(parents=True)
        holder = 0 if self.why else self._plug_in(number, home, shared)
        verb = ("enter", holder) if holder else ("here",)
        host = Host(name, f"{self.network}.{number}", home, (sys.executable, SCENE, *verb, home))
        self.hosts.append(host)
        return host

    def _plug_in(self, number: int, home: Path, shared: Sequence[Path]) -> int:
        """Make the namespaces of a host; returns a process that is in them as long as we are."""
        hidden = Path(tempfile.gettempdir()).resolve()
        assert hidden in self.folder.parents, f"{self.folder} is outside {hidden}, which is hidden from other hosts"
        seen = [("rw", home), *(("rw", path) for path in shared)]
        seen += [("ro", path) for path in INSTALLED if hidden in path.parents]
        shown = "\n".join(f"keep {mode} '{path}'" for mode, path in seen)
        script = CABLE.format(network=NETWORK, number=number, hidden=hidden, shown=shown)
        entry = [sys.executable, str(SCENE), "enter", str(self._process), "/"]
        process = subprocess.Popen(
            [*entry, "unshare", "--net", "--mount", "sh", "-ec", script], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._stack.callback(_end, process)
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said == "ready\n", said + process.stdout.read()
        done = self._run_in(self._process, "ip", "link", "set", f"cable{number}", "master", "bridge", "up")
        assert done.returncode == 0, done.stderr
        (holder,) = descendants(process.pid)
        return holder

    def listen(self) -> socket.socket:
        """Return a socket that listens on the test's own host."""
        address = f"{self.network}.{SENDERS}"
        return socket.create_server((address, 0)) if self.why else self._ask("listen", address, 0)

    def connect(self, address: tuple[str, int]) -> socket.socket:
        """Connect from the test's own host.

        Raises:
            OSError: Nobody listens there.
        """
        return socket.create_connection(address, timeout=START_S) if self.why else self._ask("connect", *address)

    def _ask(self, *request: object) -> socket.socket:
        self._control.send(json.dumps(request).encode())
        reply, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        if not descriptors:
            found = json.loads(reply)
            raise OSError(found["errno"], found["text"])
        return socket.socket(fileno=descriptors[0])

    def __str__(self) -> str:
        return f"addresses of loopback, since {self.why}" if self.why else "network and mount namespaces"

    def close(self) -> None:
        """Switch off everything: whatever runs on the hosts dies."""
        self._stack.close()

    def __enter__(self) -> "Scene":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end(process: subprocess.Popen[str]) -> None:
    with process:
        process.kill()


def descendants(pid: int) -> Iterator[int]:
    """Yield a process's children, their children, and so on."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text().split()):
                yield child
                yield from descendants(child)


def marked(name: str, value: str) -> list[int]:
    """Return the processes that were started with a variable of the environment; those that have ended have none."""
    found, line = [], f"{name}={value}".encode()
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            found += [int(file.parent.name)] if line in file.read_bytes().split(b"\0") else []
    return found


def java_of(pid: int) -> int:
    """Return the Java virtual machine that a process has started."""
    found = []
    for process in descendants(pid):
        with contextlib.suppress(OSError):  # it has ended
            found += [process] if Path(f"/proc/{process}/comm").read_text().strip() == "java" else []
    (java,) = found
    return java
