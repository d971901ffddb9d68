"""The connection that the Redis programs share."""

from typing import Any

from wallaroo_connectors.program import library

OPTIONS = ("host", "port", "password")


def client(params: Any) -> Any:
    """Return a client of the server that the parameters name, by default localhost, port 6379.

    Raises:
        WallarooParameterError: R728 if the library is not installed.
    """
    redis = library("redis", "redis")
    server = redis.Redis(host=params.host or "localhost", port=int(params.port or 6379), password=params.password)
    server.ping()
    return server
