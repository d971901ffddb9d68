"""The egress process of a driver on this machine. The driver starts it as `python -m wallaroo_runtime.egress`."""

import sys

from wallaroo_runtime.egress.service import EgressHost
from wallaroo_runtime.service.local import run_local

if __name__ == "__main__":
    sys.exit(run_local("egress", sys.argv[1:], EgressHost))
