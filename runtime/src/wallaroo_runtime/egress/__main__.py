"""The egress's process: `python -m wallaroo_runtime.egress CONFIG.json`."""

import signal
import sys
from pathlib import Path
from types import FrameType

from wallaroo_runtime.egress.config import EgressConfig
from wallaroo_runtime.egress.sender import Sender
from wallaroo_runtime.errors import RunError


def main(arguments: list[str]) -> int:
    """Run the egress until SIGTERM; returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m wallaroo_runtime.egress CONFIG.json", file=sys.stderr)
        return 2
    try:
        sender = Sender(EgressConfig.read(Path(arguments[0])))
    except RunError as error:
        print(error, file=sys.stderr)
        return error.exit_code

    def stop(number: int, frame: FrameType | None) -> None:
        sender.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        sender.run()
    except (OSError, RunError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
