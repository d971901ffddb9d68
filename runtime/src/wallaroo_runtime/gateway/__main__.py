"""The gateway's process: `python -m wallaroo_runtime.gateway CONFIG.json`."""

import signal
import sys
from pathlib import Path
from types import FrameType

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.config import GatewayConfig
from wallaroo_runtime.gateway.gateway import Gateway
from wallaroo_runtime.gateway.worker_calls import worker_maker, worker_splitter


def main(arguments: list[str]) -> int:
    """Run the gateway until SIGTERM; returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m wallaroo_runtime.gateway CONFIG.json", file=sys.stderr)
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
