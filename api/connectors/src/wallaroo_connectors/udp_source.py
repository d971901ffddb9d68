"""Each datagram that arrives at an address becomes a message.

    udp_source --application-module celsius --connector feed --feed-host 127.0.0.1 --feed-port 6789

A datagram has at most 65,507 bytes. Datagrams that the system drops because its buffer is full are lost.

Source: Wallaroo 0.5.3.
"""

import socket
from threading import Event

from wallaroo.experimental.script import SourceConnector
from wallaroo_connectors.program import LOOK_S, connect, run_source, say

MOST_BYTES = 65536


def serve(connector: SourceConnector, stop: Event) -> None:
    """Send the datagrams that arrive."""
    ((family, _, _, _, address), *_) = socket.getaddrinfo(
        connector.params.host, int(connector.params.port), type=socket.SOCK_DGRAM
    )
    with socket.socket(family, socket.SOCK_DGRAM) as listener:
        listener.bind(address)
        listener.settimeout(LOOK_S)
        connect(connector, stop)
        say(f"listening at {connector.params.host}:{listener.getsockname()[1]}")
        while not stop.is_set():
            try:
                data = listener.recv(MOST_BYTES)
            except TimeoutError:
                continue
            connector.write(data)


def main() -> int:
    """Run this source connector, with the arguments of the command line."""
    return run_source(serve, ["host", "port"])
