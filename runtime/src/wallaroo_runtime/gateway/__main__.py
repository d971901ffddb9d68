"""The gateway process of a driver on this machine. The driver starts it as `python -m wallaroo_runtime.gateway`."""

import sys

from wallaroo_runtime.gateway.service import GatewayHost
from wallaroo_runtime.service.local import run_local

if __name__ == "__main__":
    sys.exit(run_local("gateway", sys.argv[1:], GatewayHost))
