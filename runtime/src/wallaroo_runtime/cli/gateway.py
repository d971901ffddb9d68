"""`wallaroo gateway --journal DIR --listen H:P`: receive input of an application with a driver on another machine.

The gateway keeps messages on its own disk and serves them over gRPC. `wallaroo run --gateway H:P` configures its
sources. After a restart it listens at once.
"""

from functools import partial

from wallaroo_runtime.cli.service import add_service_parser, run_command

add_parser = partial(add_service_parser, kind="gateway", data="--journal", what="a journal", description=__doc__)
run = partial(run_command, "gateway")
