"""Each message becomes a datagram to an address.

    udp_sink --application-module celsius --connector out --out-host 127.0.0.1 --out-port 6790

The decoder must return bytes, or text, which is sent in UTF-8.

Source: Wallaroo 0.5.3.
"""

import socket
from threading import Event

from wallaroo.experimental.script import SinkConnector
from wallaroo_connectors.program import octets, run_sink, say, values


def serve(connector: SinkConnector, stop: Event) -> None:
    """Send the application's messages."""
    ((family, _, _, _, address), *_) = socket.getaddrinfo(
        connector.params.host, int(connector.params.port), type=socket.SOCK_DGRAM
    )
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        connector.listen()
        say(f"sending to {connector.params.host}:{connector.params.port}")
        for value in values(connector, stop):
            sender.sendto(octets(value), address)


def main() -> int:
    """Run this sink connector, with the arguments of the command line."""
    return run_sink(serve, ["host", "port"])
