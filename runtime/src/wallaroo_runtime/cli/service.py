"""The common parts of the commands `wallaroo gateway` and `wallaroo egress`, which run a service."""

import argparse
from pathlib import Path
from typing import Any

from wallaroo_runtime.console.json_line import print_result, report
from wallaroo_runtime.errors import host_port
from wallaroo_runtime.topology.override import parse_address

TOKEN_HELP = "file with the token, mode 0600; needed beyond loopback"


def add_service_parser(subparsers: Any, kind: str, data: str, what: str, description: str | None) -> None:
    """Declare the arguments of a service's command.

    Args:
        kind: `gateway` or `egress`.
        data: Name of the option for the directory of the service.
    """
    parser = subparsers.add_parser(kind, help=f"serve {what} to drivers and executors", description=description)
    add = parser.add_argument
    add(data, dest="directory", required=True, metavar="DIR", help=f"directory of {what}; created if missing")
    add("--listen", required=True, metavar="H:P", help="where drivers and executors reach it; port 0: any")
    add("--token-file", metavar="FILE", help=f"{TOKEN_HELP}; default: DIR/token, made")
    add("--tls-certificate", metavar="FILE", help="certificates (PEM); default: no TLS")
    add("--tls-key", metavar="FILE", help="private key (PEM)")
    add("--json", action="store_true", help="print the address as JSON")


def run_command(kind: str, arguments: argparse.Namespace) -> int:
    """Serve as a gateway or egress until a signal stops it.

    Args:
        kind: `gateway` or `egress`.
    """
    # Late: gRPC takes long to import.
    from wallaroo_runtime.peer.standalone import ServiceOptions, listen_of, run_service

    def path(text: str | None) -> Path | None:
        return Path(text) if text else None

    host, port = parse_address("--listen", arguments.listen)
    options = ServiceOptions(
        Path(arguments.directory).absolute(),
        host_port(host, port),
        path(arguments.token_file),
        path(arguments.tls_certificate),
        path(arguments.tls_key),
    )
    _, findings = listen_of(kind, options)
    for finding in findings:
        report([finding], arguments.json)

    def tell(address: str, token_file: str) -> None:
        values = {"state": "serving", "address": address, "token_file": token_file}
        text = f"{kind} serves at {address}; its token is in {token_file}"
        print_result(values, text, as_json=arguments.json)

    return run_service(kind, options, tell)
