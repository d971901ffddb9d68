"""The processes `wallaroo gateway` and `wallaroo egress`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.durable.file import refuse_links
from wallaroo_runtime.egress.service import EgressHost
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.gateway.service import GatewayHost
from wallaroo_runtime.service.credential import Listen, is_loopback, make_token, read_certificates, read_key, read_token
from wallaroo_runtime.service.host import Host
from wallaroo_runtime.service.server import serve, serve_until
from wallaroo_runtime.system.stop import stop_event


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options of a service's command line.

    Attributes:
        directory: Directory of the service's data.
        listen: HOST:PORT; port 0 lets the system choose a port.
        token_file: File with the token; None for `token` in the directory, which is created if it does not exist.
        certificate: File with the service's certificates (PEM); None if there is no TLS.
        key: File with the service's private key (PEM).
    """

    directory: Path
    listen: str
    token_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


def listen_of(kind: str, options: ServiceOptions) -> tuple[Listen, list[Diagnostic]]:
    """Return the address, token and certificates with which a service listens, and warnings about them.

    Raises:
        RunError: R608 if options contradict each other; R616, R640 or R716 if a file cannot be used; R645 if other
            machines could reach the service and the operator gave no token.
    """
    is_private = is_loopback(options.listen.rpartition(":")[0])
    if bool(options.certificate) != bool(options.key):
        reason = "--tls-certificate and --tls-key belong together"
        raise RunError.of("R608", USAGE, reason=reason, fix="give both or none")
    if options.token_file is None and not is_private:
        raise RunError.of("R645", USAGE, service=kind, address=options.listen)
    if options.token_file is None:
        try:
            options.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            token = make_token(options.directory / "token")
        except OSError as error:
            raise _not_usable(kind, options.directory, error) from error
    else:
        token = read_token(options.token_file)
    certificate = key = b""
    if options.certificate and options.key:
        certificate, key = read_certificates(options.certificate), read_key(options.key, options.certificate)
    warnings = [] if is_private or certificate else [Diagnostic.of("R651", service=kind, address=options.listen)]
    return Listen(options.listen, token, certificate, key), warnings


def run_service(kind: str, options: ServiceOptions, tell: Callable[[str, str], None]) -> int:
    """Run a gateway or an egress as a service until SIGINT or SIGTERM.

    Args:
        kind: `gateway` or `egress`.
        tell: Called with the real address and the file of the token when the service is ready.

    Returns:
        The exit code; 1 if the service cannot go on, and has reported the reason.

    Raises:
        RunError: The service cannot start; R711 if its directory has symbolic links.
    """
    stopped = stop_event()
    refuse_links(options.directory)
    listen, _ = listen_of(kind, options)
    host = _host(kind, options, listen.address)
    try:
        server, address = serve(kind, listen, host.answer)
        host.store.address = address
        tell(address, str(options.token_file or options.directory / "token"))
        return serve_until(stopped.wait, host, server)
    finally:
        host.close()


def _host(kind: str, options: ServiceOptions, address: str) -> Host:
    try:
        if kind == "gateway":
            return GatewayHost(options.directory, address)
        return EgressHost(options.directory, address)
    except OSError as error:
        raise _not_usable(kind, options.directory, error) from error


def _not_usable(kind: str, directory: Path, error: OSError) -> RunError:
    return RunError.of("R616", USAGE, path=directory, done=f"used by the {kind}", reason=error.strerror or str(error))
