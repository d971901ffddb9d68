"""Connections of a socket to itself, which the system makes when a port of its own range has no listener."""

import subprocess
import sys

import pytest

# In a network of its own, whose range is one port: the first connection to it without a listener is one to itself.
NETWORK = """
import subprocess
PORT = 40000
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as file:
    file.write(f"{PORT} {PORT}")
"""
PLAIN = """
import socket
with socket.create_connection(("127.0.0.1", PORT)) as own:
    print("connected")
"""
EGRESS = """
from wallaroo.experimental.tcp import connected
try:
    connected("127.0.0.1", PORT, 5)
except ConnectionRefusedError as error:
    print(error.strerror)
"""
AT_LEAST_ONCE = """
from wallaroo.experimental.at_least_once import AtLeastOnceSourceConnector
try:
    AtLeastOnceSourceConnector("1", "word", "program", "1", "127.0.0.1", PORT).connect()
except ConnectionRefusedError as error:
    print(error.strerror)
"""
SCRIPT = """
from types import SimpleNamespace
from wallaroo.experimental.script import SourceConnector
connector = object.__new__(SourceConnector)
connector.config = SimpleNamespace(host="127.0.0.1", port=PORT)
try:
    connector.connect(timeout=0)
except ConnectionRefusedError as error:
    print(error.strerror)
"""
MEMORY = """
import asyncio
from wallaroo_runtime.memory.receiver import Receiver
from wallaroo_runtime.topology.model import TcpSink

said = []
sink = TcpSink(path="", name="out", kind="tcp", worker="", inputs=(), host="127.0.0.1", port=PORT)

async def run():
    receiver = Receiver(sink, said.append)
    receiver.put(b"kept", 1)
    task = asyncio.create_task(receiver.run())
    while not said and receiver.pending:
        await asyncio.sleep(0.01)
    task.cancel()
    print(said[0].message.rpartition("; ")[0].rpartition("; ")[2] if said else "", bytes(receiver.pending).decode())

asyncio.run(run())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "printed"),
    [
        (PLAIN, "connected"),
        (EGRESS, "Connection refused"),
        (AT_LEAST_ONCE, "Connection refused"),
        (SCRIPT, "Connection refused"),
        (MEMORY, "Connection refused kept"),
    ],
    ids=["plain", "egress", "at least once", "script", "memory"],
)
def test_nothing_is_sent_to_itself(program: str, printed: str) -> None:
    command = ["unshare", "--map-root-user", "--net", sys.executable, "-c", NETWORK + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == printed, done.stderr
