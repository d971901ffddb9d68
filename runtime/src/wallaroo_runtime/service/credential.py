"""Tokens and certificates of services, and the check for addresses that need no token."""

import ipaddress
import os
import secrets
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path

from wallaroo_runtime.errors import USAGE, RunError

TOKEN_FILE, AUTHORITY = "spark.wallaroo.service.tokenFile", "spark.wallaroo.service.tlsCa"  # settings of `--conf`
MAX_TOKEN_BYTES = 64 * 1024
LEAST_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class Listen:
    """The address where a service listens, and the credentials that it asks of callers.

    Attributes:
        address: HOST:PORT, port 0 lets the system choose one; or `unix:PATH`.
        token: Token that each call must carry; empty if calls need no token.
        certificate: The server's certificates (PEM); empty if there is no TLS.
        key: The server's private key (PEM).
    """

    address: str
    token: str = field(default="", repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a listener at a host.

    Example:
        >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "", "node7")]
        [True, True, True, False, False, False]
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def read_token(path: Path) -> str:
    """Return the token of a file that only its owner can read.

    Raises:
        RunError: R640 if the file cannot be used.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(descriptor).st_mode
            content = file.read(MAX_TOKEN_BYTES) if stat.S_ISREG(mode) else b""
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    if not stat.S_ISREG(mode):
        raise _refused(path, "it is not a file")
    if mode & 0o077:
        raise _refused(path, f"its mode is {stat.S_IMODE(mode):04o}, so that others can use it; `chmod 600` it")
    token = content.decode("ascii", "replace").strip()
    if len(token) < LEAST_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token:
        raise _refused(path, f"it must hold one word of at least {LEAST_CHARACTERS} printable ASCII characters")
    return token


def make_token(path: Path) -> str:
    """Return the token of a file. A missing file is created with mode 0600 and a random token.

    Raises:
        RunError: R640 if the file cannot be used.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return read_token(path)
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32) + "\n")
        file.flush()
        os.fsync(descriptor)
    return read_token(path)


def _refused(path: Path, reason: str) -> RunError:
    return RunError.of("R640", USAGE, path=path, reason=reason)


def read_certificates(path: Path) -> bytes:
    """Return the content of a file with certificates.

    Raises:
        RunError: R616 if the file cannot be read, or is no PEM file; R716 if a certificate is damaged or there is none.
    """
    content = _read_pem(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        reason, fix = (
            f"it has no certificate, or a damaged one ({_text(error)})",
            "give a file with certificates in PEM",
        )
        raise RunError.of("R716", USAGE, what=f"certificate {path}", reason=reason, fix=fix) from error
    return content


def read_key(path: Path, certificate: Path) -> bytes:
    """Return the content of a file with the private key of a certificate.

    Raises:
        RunError: R616 if the file cannot be read, or is no PEM file; R716 if it is not the key of the certificate, or
            is encrypted.
    """
    content = _read_pem(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, path, password=str)
    except ssl.SSLError as error:
        reason = f"it does not belong to {certificate}, is encrypted or is damaged ({_text(error)})"
        fix = "give the private key of the first certificate, in PEM without a passphrase"
        raise RunError.of("R716", USAGE, what=f"private key {path}", reason=reason, fix=fix) from error
    return content


def _text(error: ssl.SSLError) -> str:
    """Return OpenSSL's text of an error, without the place in Python's own source, `(_ssl.c:LINE)`."""
    return str(error.strerror or error).partition(" (_ssl.c")[0]


def _read_pem(path: Path) -> bytes:
    try:
        content = path.read_bytes() if path.is_file() else b""
    except OSError as error:
        raise RunError.of("R616", USAGE, path=path, done="read", reason=error.strerror or str(error)) from error
    if b"-----BEGIN " not in content:
        reason = "it is no PEM file" if path.exists() else "there is no such file"
        raise RunError.of("R616", USAGE, path=path, done="read", reason=reason)
    return content
