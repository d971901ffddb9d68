"""What spark-submit, or `wallaroo submit`, starts as the driver: the command `wallaroo` as a file."""

import sys

from wallaroo_runtime.cli.start import main

if __name__ == "__main__":
    sys.exit(main())
