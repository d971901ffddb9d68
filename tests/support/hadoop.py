"""A real HDFS and a real YARN on loopback: each daemon is a process of its own; the jars come from Maven."""

import contextlib
import re
import signal
import socket
import subprocess
from pathlib import Path

import pyspark

from support.host import descendants
from support.life import free_port
from support.run import wait_until
from support.standalone import cmdline
from wallaroo_runtime.system.java import QUICK_JAVA
from wallaroo_runtime.system.maven import fetched_jars

JARS = Path(pyspark.__file__).parent / "jars"
VERSION = next(JARS.glob("hadoop-client-api-*.jar")).stem.removeprefix("hadoop-client-api-")
COORDINATES = (
    f"org.apache.hadoop:hadoop-client-minicluster:{VERSION}",
    "org.slf4j:slf4j-reload4j:1.7.36",
    "org.bouncycastle:bcpkix-jdk18on:1.78.1",
)
START_S, STOP_S = 240.0, 60.0
NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
LOOPBACK, ANY_PORT = "127.0.0.1", "127.0.0.1:0"
MORTAL = ("setpriv", "--pdeathsig", "KILL")
# Containers of a node outlive a node manager that is killed; those of a process namespace do not. A new user namespace
# makes a process forget what shall end it, so it comes first.
NODE = ("unshare", "--map-root-user", *MORTAL, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
LOG = """\
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


def jars() -> Path:
    """Return the directory of Hadoop's jars, of the version that Spark has."""
    return fetched_jars(f"hadoop-{VERSION}", COORDINATES)


class Daemon:
    """One of Hadoop's, with a log of its own; it dies with the process that started it.

    Args:
        name: Of its log.
        main: Its class.
        conf: Directory of the configuration.
        prefix: What starts it.
    """

    def __init__(self, name: str, main: str, conf: Path, prefix: tuple[str, ...] = MORTAL) -> None:
        self.name, self._main, self._conf, self._prefix = name, main, conf, prefix
        self.log = conf.parent / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *arguments: str) -> list[str]:
        """Return its command line."""
        options = ["-Xmx256m", *QUICK_JAVA.split(), "-Djava.net.preferIPv4Stack=true"]
        return [*self._prefix, "java", *options, "-cp", f"{self._conf}:{jars()}/*", self._main, *arguments]

    def start(self) -> "Daemon":
        """Start it; others say when it can be used."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), cwd=self.log.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        return self

    def said(self) -> str:
        """Return the end of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def wait_for(self, host: str, port: int) -> None:
        """Wait until it takes connections."""

        def connects() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, f"{self.name} ended:\n{self.said()}"
            with contextlib.suppress(OSError):
                socket.create_connection((host, port), timeout=1).close()
                return True
            return False

        wait_until(connects, lambda: f"{self.name} at {host}:{port}:\n{self.said()}", START_S, every=0.1)

    def kill(self) -> None:
        """End it with no warning."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(STOP_S)


class Hadoop:
    """Name node, data node, resource manager, node manager.

    Args:
        folder: Empty; everything of theirs is there.
        has_yarn: Whether there are a resource manager and a node manager.

    Attributes:
        url: Of the file system.
        conf: What HADOOP_CONF_DIR shall be for those who use it.
    """

    def __init__(self, folder: Path, *, has_yarn: bool = True) -> None:
        self.folder, self.conf, self._has_yarn = folder, folder / "conf", has_yarn
        self.conf.mkdir(parents=True)
        self.port = free_port(0)
        self.url = f"hdfs://{LOOPBACK}:{self.port}"
        self._manager_ports = [free_port(number) for number in range(1, 6)]
        self._write()
        self.name_node = Daemon("name-node", NAME_NODE, self.conf)
        self.data_node = Daemon("data-node", DATA_NODE, self.conf)
        self.resource_manager = Daemon("resource-manager", RESOURCE_MANAGER, self.conf)
        self.node_manager = Daemon("node-manager", NODE_MANAGER, self.conf, NODE)

    def _write(self) -> None:
        files = self.folder / "files"
        (manager, scheduler, tracker, admin, pages) = (f"{LOOPBACK}:{port}" for port in self._manager_ports)
        configuration = {
            "core-site": {"fs.defaultFS": self.url, "hadoop.tmp.dir": self.folder / "tmp"},
            "hdfs-site": {
                "dfs.namenode.name.dir": f"file://{files}/name",
                "dfs.datanode.data.dir": f"file://{files}/data",
                "dfs.namenode.http-address": ANY_PORT,
                "dfs.datanode.address": ANY_PORT,
                "dfs.datanode.http.address": ANY_PORT,
                "dfs.datanode.ipc.address": ANY_PORT,
                "dfs.datanode.hostname": LOOPBACK,
                "dfs.replication": 1,
                "dfs.permissions.enabled": "false",
                "dfs.namenode.safemode.extension": 0,
                "dfs.heartbeat.interval": 1,
            },
            "yarn-site": {
                "yarn.resourcemanager.hostname": LOOPBACK,
                "yarn.resourcemanager.address": manager,
                "yarn.resourcemanager.scheduler.address": scheduler,
                "yarn.resourcemanager.resource-tracker.address": tracker,
                "yarn.resourcemanager.admin.address": admin,
                "yarn.resourcemanager.webapp.address": pages,
                "yarn.nodemanager.hostname": LOOPBACK,
                "yarn.nodemanager.address": ANY_PORT,
                "yarn.nodemanager.localizer.address": ANY_PORT,
                "yarn.nodemanager.collector-service.address": ANY_PORT,
                "yarn.nodemanager.webapp.address": ANY_PORT,
                "yarn.nodemanager.local-dirs": files / "local",
                "yarn.nodemanager.log-dirs": files / "logs",
                "yarn.nodemanager.resource.memory-mb": 8192,
                "yarn.nodemanager.resource.cpu-vcores": 8,
                "yarn.nodemanager.vmem-check-enabled": "false",
                "yarn.nodemanager.disk-health-checker.enable": "false",
                "yarn.nodemanager.delete.debug-delay-sec": 3600,
                "yarn.scheduler.minimum-allocation-mb": 128,
                "yarn.am.liveness-monitor.expiry-interval-ms": 60_000,
                "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 500,
            },
            "capacity-scheduler": {
                "yarn.scheduler.capacity.root.queues": "default",
                "yarn.scheduler.capacity.root.default.capacity": 100,
                "yarn.scheduler.capacity.maximum-am-resource-percent": 1,
            },
        }
        for name, settings in configuration.items():
            properties = "".join(
                f"<property><name>{k}</name><value>{v}</value></property>\n" for k, v in settings.items()
            )
            (self.conf / f"{name}.xml").write_text(f"<configuration>\n{properties}</configuration>\n")

        (self.conf / "log4j.properties").write_text(LOG)

    def start(self) -> "Hadoop":
        """Format the file system and start all daemons."""
        if self._has_yarn:
            self.resource_manager.start()
            self.node_manager.start()
        self._run(self.name_node.command("-format", "-nonInteractive"))
        self.name_node.start()
        self.data_node.start()
        joined = "successfully registered with NN"
        wait_until(lambda: joined in self.data_node.said(), lambda: f"{joined}:\n{self.data_node.said()}", START_S)
        if self._has_yarn:
            self.resource_manager.wait_for(LOOPBACK, self._manager_ports[0])
        return self

    def start_name_node(self) -> None:
        """Start a name node that was killed, and wait until it can be written to."""
        self.name_node.start()
        self.name_node.wait_for(LOOPBACK, self.port)
        self.admin("-safemode", "wait")

    def environment(self) -> dict[str, str]:
        """Return the variables that name the cluster's configuration."""
        return {"HADOOP_CONF_DIR": str(self.conf)}

    def admin(self, *arguments: str) -> None:
        """Run `hdfs dfsadmin`."""
        self._run(self._tool("org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments))

    def files(self, path: str) -> list[str]:
        """Return the paths of all files below a directory of HDFS."""
        said = self._run(self._tool("org.apache.hadoop.fs.FsShell", "-ls", "-R", "-C", path))
        return [line for line in said.splitlines() if line.startswith("/")]

    def containers(self, program: bytes) -> list[int]:
        """Return the JVMs in YARN's containers that run a program."""
        assert self.node_manager.process is not None
        found = descendants(self.node_manager.process.pid)
        return [pid for pid in found if cmdline(pid).split(b"\0")[0].endswith(b"java") and program in cmdline(pid)]

    def end_applications(self) -> None:
        """End all applications as `yarn application -kill` does."""
        tool = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
        listed = self._run(self._tool(tool, "application", "-list"))
        for identity in re.findall(r"^(application_\d+_\d+)", listed, re.MULTILINE):
            self._run(self._tool(tool, "application", "-kill", identity))
        wait_until(lambda: not self.containers(b"org.apache.spark"), lambda: "the end of all containers", START_S)

    def said(self, application: str = "") -> str:
        """Return what containers have written, the newest of them last."""
        logs = (self.folder / "files" / "logs").glob(f"{application or '*'}/*/std*")
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(logs)]
        return "\n".join(text[-6000:] for text in texts)

    def _tool(self, main: str, *arguments: str) -> list[str]:
        return ["java", "-Xmx128m", *QUICK_JAVA.split(), "-cp", f"{self.conf}:{jars()}/*", main, *arguments]

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_S, check=False)
        assert done.returncode == 0, f"{command[-3:]}: {done.stdout}{done.stderr}"
        return done.stdout

    def _daemons(self) -> tuple[Daemon, ...]:
        return self.name_node, self.data_node, self.resource_manager, self.node_manager

    def close(self) -> None:
        """End everything; what runs in containers ends with the node manager."""
        for daemon in self._daemons():
            daemon.kill()

    def __enter__(self) -> "Hadoop":
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()
