"""The gateway's process: `python -m wallaroo_runtime.ingest CONFIG.json`."""

import pkgutil
import signal
import sys
from pathlib import Path
from types import FrameType

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.ingest.config import GatewayConfig, GeneratorConfig, SourceConfig
from wallaroo_runtime.ingest.framing import Splitter
from wallaroo_runtime.ingest.gateway import Gateway
from wallaroo_runtime.ingest.generator import Maker

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


def main(arguments: list[str]) -> int:
    """Run the gateway until SIGTERM; returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m wallaroo_runtime.ingest CONFIG.json", file=sys.stderr)
        return 2
    try:
        gateway = Gateway(GatewayConfig.read(Path(arguments[0])), worker_splitter, worker_maker)
    except RunError as error:
        print(error, file=sys.stderr)
        return error.exit_code

    def stop(number: int, frame: FrameType | None) -> None:
        gateway.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        gateway.run()
    except (OSError, RunError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
