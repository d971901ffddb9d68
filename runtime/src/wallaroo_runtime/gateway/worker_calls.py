"""Calls workers for sources whose messages only a worker can cut or make."""

import pkgutil

from wallaroo_runtime.gateway.framing import Splitter
from wallaroo_runtime.gateway.generator import Maker
from wallaroo_runtime.service._proto import service_pb2 as pb

# Names as text, since this package does not import `worker`.
SPLITTER, MAKER = (f"wallaroo_runtime.worker.idempotent_call:{name}" for name in ("WorkerSplitter", "WorkerMaker"))


def worker_splitter(config: pb.Source) -> Splitter:
    """Return a splitter that lets the worker of a source cut its bytes into messages."""
    splitter: Splitter = pkgutil.resolve_name(SPLITTER)(config.target, config.path, config.max_message_bytes)
    return splitter


def worker_maker(config: pb.Generator) -> Maker:
    """Return a `Maker` that lets the worker of a generator source make its messages."""
    maker: Maker = pkgutil.resolve_name(MAKER)(config.target, config.path)
    return maker
