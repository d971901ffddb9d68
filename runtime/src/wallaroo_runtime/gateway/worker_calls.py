"""What asks workers on behalf of sources whose messages only they can cut or make."""

import pkgutil

from wallaroo_runtime.gateway.config import GeneratorConfig, SourceConfig
from wallaroo_runtime.gateway.framing import Splitter
from wallaroo_runtime.gateway.generator import Maker

# As text, since this package knows nothing of workers; found only for sources that need it: gRPC takes long to import.
SPLITTER = "wallaroo_runtime.worker.split:WorkerSplitter"
MAKER = "wallaroo_runtime.worker.generate:WorkerMaker"


def worker_splitter(config: SourceConfig) -> Splitter:
    """Make the splitter that a source's framing names, by default the one that asks its worker."""
    make = pkgutil.resolve_name(config.framing.get("splitter", SPLITTER))
    splitter: Splitter = make(config.framing["target"], config.path, config.max_message_bytes)
    return splitter


def worker_maker(config: GeneratorConfig) -> Maker:
    """Make the maker that a generator source names, by default the one that asks its worker."""
    maker: Maker = pkgutil.resolve_name(config.maker or MAKER)(config.target, config.path)
    return maker
