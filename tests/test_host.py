"""The hosts that the tests of clusters run on: what they see of one another."""

import errno
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.host import LOOPBACK, Host, Scene, descendants
from support.run import TESTS, wait_until

pytestmark = pytest.mark.slow
SERVER = """
import socket, sys
server = socket.create_server((sys.argv[1], 0))
print(server.getsockname()[1], flush=True)
server.accept()[0].sendall(b"hello")
sys.stdin.read()
"""
CLIENT = "import socket, sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 60).recv(9).decode())"
LATER = f"""
import subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {str(TESTS)!r})
from support.host import Scene
scene = Scene(Path(sys.argv[1]), *sys.argv[2:])
process = subprocess.Popen([*map(str, scene.add("one").entry), "sleep", "600"])
print("started", flush=True)
time.sleep(600)
"""


def seen(host: Host, path: Path) -> list[str]:
    """Return what a host finds in a directory."""
    return host.run("ls", path).stdout.split()


def test_hosts_see_the_shared_directory_and_their_own_alone(tmp_path: Path, remark: Callable[[str], None]) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    with Scene(tmp_path) as scene:
        remark(f"hosts: {scene}")
        one, two = scene.add("one", shared), scene.add("two", shared)
        three = scene.add("three")
        for host in (one, two, three):
            assert host.run("sh", "-c", "echo mine > file").returncode == 0
            assert seen(host, host.folder) == ["file"]
        assert one.run("touch", shared / "found").returncode == 0
        assert seen(two, shared) == ["found"]
        with scene.listen() as listener, scene.connect(listener.getsockname()) as connection:
            accepted, _ = listener.accept()
            with accepted:
                connection.sendall(b"x")
                assert accepted.recv(1) == b"x"
        assert reached(one, two, one.address) == "hello"
        if scene.why:
            return
        assert seen(one, tmp_path) == ["one", "shared"]
        assert seen(three, tmp_path) == ["three"]
        assert three.run("touch", TESTS / "x").returncode != 0, "the installation is not to be changed"
        assert three.run("touch", "/x").returncode != 0
        assert "refused" in reached(one, two, "127.0.0.1"), "loopback is each host's own"
        with pytest.raises(OSError) as caught:
            scene.connect(("192.0.2.1", 9))
        assert caught.value.errno == errno.ENETUNREACH, "nothing gets out"


def reached(server: Host, client: Host, address: str) -> str:
    """Let one host connect to another one; returns what it says."""
    command = [*map(str, server.entry), sys.executable, "-c", SERVER, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        done = client.run(sys.executable, "-c", CLIENT, address, process.stdout.readline().strip())
        process.kill()
    return done.stdout.strip() or done.stderr


def test_a_machine_without_ip_has_addresses_of_loopback(tmp_path: Path) -> None:
    with Scene(tmp_path, path=str(tmp_path)) as scene:
        assert str(scene) == "addresses of loopback, since there is no `ip` (Debian: iproute2) or no `unshare`"
        one, two = scene.add("one"), scene.add("two")
        assert (one.address, two.address) == (f"{LOOPBACK}.2", f"{LOOPBACK}.3")
        assert reached(one, two, one.address) == "hello"
        with scene.listen() as listener, scene.connect(listener.getsockname()):
            assert listener.getsockname()[0] == f"{LOOPBACK}.1"


def test_commands_end_as_they_would_here(tmp_path: Path) -> None:
    with Scene(tmp_path) as scene:
        host = scene.add("one")
        assert host.run("sh", "-c", "exit 3").returncode == 3
        assert host.run("sh", "-c", "kill -KILL $$").returncode == -signal.SIGKILL
        assert host.run("sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
        command = [*map(str, host.entry), "sh", "-c", "trap 'exit 5' TERM; echo ready; sleep 60 & wait"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            process.terminate()
            assert process.wait(timeout=120) == 5


@pytest.mark.parametrize("path", [(), ("/nowhere",)], ids=["namespaces", "loopback"])
def test_nothing_is_left_of_a_killed_test(path: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-c", LATER, str(tmp_path), *path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline()
        wait_until(lambda: any(map(sleeps, descendants(process.pid))), lambda: "the command on the host")
        family = [process.pid, *descendants(process.pid)]
        process.kill()
    wait_until(lambda: not any(map(runs, family)), lambda: "the end of what a killed test has started")


def sleeps(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x00600\x00"
    except OSError:  # a process of the scene that has done its part
        return False


def runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
