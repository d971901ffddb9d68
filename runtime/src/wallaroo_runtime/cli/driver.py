"""The driver program that spark-submit, or `wallaroo submit`, starts: the command `wallaroo` as a file."""

import sys

from wallaroo_runtime.cli.start import main

if __name__ == "__main__":
    sys.exit(main())
