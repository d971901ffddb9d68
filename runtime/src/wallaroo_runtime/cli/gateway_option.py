"""Reads the options and settings of `run` that name remote gateways and a remote egress."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.service.credential import AUTHORITY, TOKEN_FILE
from wallaroo_runtime.topology.override import parse_address

if TYPE_CHECKING:
    from wallaroo_runtime.peer.remote import RemoteOptions


def remote_of(arguments: argparse.Namespace, conf: Mapping[str, str]) -> "RemoteOptions":
    """Return the remote services that the options name, with their credentials.

    Raises:
        RunError: R608 if a name is given twice; T211 if an address is not valid.
    """
    from wallaroo_runtime.peer.remote import RemoteOptions  # late import: gRPC takes long to import

    gateways: dict[str, str] = {}
    for text in arguments.gateway:
        name, _, address = text.rpartition("=")
        if name in gateways:
            what = f'source "{name}"' if name else "the sources"
            raise wrong_usage(reason=f"--gateway: {what} has two gateways", fix="give each one once")
        parse_address("--gateway", address)
        gateways[name] = address
    if arguments.egress:
        parse_address("--egress", arguments.egress)
    return RemoteOptions(gateways, arguments.egress, *credentials_of(conf))


def credentials_of(conf: Mapping[str, str]) -> tuple[Path | None, Path | None]:
    """Return the files of the token and of the certificates from settings; None for a file that is not set."""
    token_file, authority = (Path(conf[name]) if name in conf else None for name in (TOKEN_FILE, AUTHORITY))
    return token_file, authority
