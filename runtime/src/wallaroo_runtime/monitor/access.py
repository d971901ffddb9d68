"""Restricts access to a run's monitor: readers need the run's token, and pages of other sites get no answer."""

import hmac
import ipaddress
import re
import secrets
from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
OFF = "off"  # in place of an address
TOKEN_FILE = "spark.wallaroo.monitor.tokenFile"  # setting of `--conf`
ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]*):(?P<port>\d{1,5})")
MAX_PORT = 65535
TOKEN_BYTES = 24


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def parse_address(text: str) -> tuple[str, int] | None:
    """Return host and port of HOST:PORT; None if the text is no address. An empty host means this machine only.

    Example:
        >>> parse_address(":8080"), parse_address("[::1]:0"), parse_address("8080")
        (('127.0.0.1', 8080), ('::1', 0), None)
    """
    match = ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > MAX_PORT:
        return None
    return match["host"].strip("[]") or LOOPBACK, int(match["port"])


def is_own_name(host_header: str, listens_at: str) -> bool:
    """Say whether the header `Host` of a request names this server, and not another site.

    The owner of another site may let the site's name lead to this machine (DNS rebinding). But browsers then send that
    name in `Host`. An IP address cannot be abused in this way.

    Args:
        host_header: The header `Host` of the request.
        listens_at: The host that the user gave.

    Example:
        >>> [is_own_name(name, "127.0.0.1") for name in ("127.0.0.1:80", "localhost:80", "[::1]:80", "evil.example:80")]
        [True, True, True, False]
    """
    match = ADDRESS.fullmatch(host_header if ":" in host_header.rpartition("]")[2] else f"{host_header}:80")
    if match is None:
        return False
    name = match["host"].strip("[]").lower()
    if name in ("localhost", listens_at.lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def has_token(token: str, query: Mapping[str, list[str]], authorization: str) -> bool:
    """Say whether a request has the token: `?token=`, or `Authorization: Bearer`."""
    scheme, _, bearer = authorization.partition(" ")
    offered = bearer.strip() if scheme.lower() == "bearer" else query.get("token", [""])[0]
    return hmac.compare_digest(offered.encode(), token.encode())
