"""`wallaroo egress --outbox DIR --listen H:P`: deliver output of an application with a driver on another machine.

The egress gets output and dead letters from executors over gRPC, keeps them on its own disk, and sends output to the
sinks that `wallaroo run --egress H:P` names. After a restart it continues at once.
"""

from functools import partial

from wallaroo_runtime.cli.service import add_service_parser, run_command

add_parser = partial(add_service_parser, kind="egress", data="--outbox", what="an outbox", description=__doc__)
run = partial(run_command, "egress")
