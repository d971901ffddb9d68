"""The options of `run` that name remote gateways and a remote egress."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.topology.override import parse_address

if TYPE_CHECKING:
    from wallaroo_runtime.peer.remote import RemoteOptions


def remote_of(arguments: argparse.Namespace) -> "RemoteOptions":
    """Return the remote services that the options name.

    Raises:
        RunError: R608, a name is given twice; T211, an address is none.
    """
    from wallaroo_runtime.peer.remote import RemoteOptions  # late: gRPC takes long to import

    gateways: dict[str, str] = {}
    for text in arguments.gateway:
        name, _, address = text.rpartition("=")
        if name in gateways:
            what = f'source "{name}"' if name else "the sources"
            raise wrong_usage(reason=f"--gateway: {what} has two gateways", fix="give each one once")
        gateways[name] = _checked("--gateway", address)
    egress = _checked("--egress", arguments.egress) if arguments.egress else ""
    token_file, authority = (Path(text) if text else None for text in (arguments.token_file, arguments.tls_ca))
    return RemoteOptions(gateways, egress, token_file, authority)


def _checked(option: str, text: str) -> str:
    parse_address(option, text)
    return text
