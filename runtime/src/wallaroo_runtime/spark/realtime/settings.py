"""The settings of Spark, and of the operators in Java, for a query in real-time mode."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from wallaroo_runtime.plan import Plan
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.spark.operators import plan_settings
from wallaroo_runtime.spark.worker_start import RunningWorker
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.topology.model import KafkaSource

BATCH_S = 300  # length of a batch without input; with input it ends after BATCH_MS or BATCH_BYTES, or when idle
BATCH_SETTING = "spark.wallaroo.realtime.batchSeconds"  # for measurements and tests that need shorter batches
BATCH_BYTES = 256 << 20
BATCH_MS, IDLE_MS = 60_000, 10_000
FLUSH_MS = 1000  # open calls end after this time; only their messages are processed again if a worker dies
ROW_BYTES = 256 << 10
_numbers = count()


def session_settings(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the additional settings of Spark in real-time mode.

    Args:
        chosen: Settings of the user, which override the mode's settings.
    """
    own = {
        "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # the list lacks our sink
        "spark.sql.streaming.realTimeMode.minBatchDuration": "100",
        # Otherwise a query without state would write its offsets in another thread, and refuse our sink.
        "spark.sql.streaming.realTimeMode.asyncProgressTrackingByDefault.enabled": "false",
        "spark.sql.streaming.pollingDelay": "10ms",
    }
    return own | dict(chosen)


@dataclass(frozen=True, slots=True)
class Services:
    """The addresses of gateway and egress, for the operators in Java.

    Attributes:
        journal: Directory of the journal; empty if the gateway sends the journal.
        gateway: The gateway, with its epoch and the id of the journal. Its address is a Unix socket, or HOST:PORT if it
            is remote.
        egress: The egress, with an address like the gateway's.
    """

    journal: str
    gateway: Service
    egress: Service

    @property
    def remote(self) -> tuple[Service, ...]:
        """The services among gateway and egress that are remote."""
        return tuple(service for service in (self.gateway, self.egress) if not is_local(service))


def is_local(service: Service) -> bool:
    """Say whether a service is a process of this machine, which serves on a Unix socket.

    Example:
        >>> [is_local(Service("egress", address)) for address in ("/tmp/c/egress/socket", "localhost:7101")]
        [True, False]
    """
    return service.address.startswith("/")


def operator_settings(
    plan: Plan,
    workers: Mapping[str, RunningWorker],
    services: Services,
    policy: ErrorPolicy,
    topics: Sequence[KafkaSource] = (),
) -> str:
    """Return the settings of the operators in Java for a query in real-time mode, as JSON.

    They have no token, because Spark shows them in its plans and logs.

    Args:
        plan: A plan without obstacles to real-time mode.
        workers: The workers by name.
        services: The services of the run.
        policy: Says which dead letters stop the query.
        topics: The sources of Kafka.
    """
    return json.dumps(
        {
            **plan_settings(plan, workers),
            "topics": {plan.ports[each.path]: {"source": each.name, "name": each.topic} for each in topics},
            "timed_topics": [plan.ports[each.path] for each in topics if not each.table],
            "policy": {"fails": policy.fails, "parts": dict(policy.parts)},
            "journal": services.journal,
            "journal_id": services.gateway.store,
            "gateway": _short(services.gateway),
            "gateway_epoch": services.gateway.epoch,
            "egress": _short(services.egress),
            "egress_epoch": services.egress.epoch,
            "flush_ms": FLUSH_MS,
            "row_bytes": ROW_BYTES,
            "batch_bytes": BATCH_BYTES,
            "batch_ms": BATCH_MS,
            "idle_ms": IDLE_MS,
        }
    )


def _short(service: Service) -> str:
    """Return the address of a service; for a Unix socket a link to it, since paths of sockets must be short."""
    if not is_local(service):
        return service.address
    path = Path(service.address)
    link = temporary_directory() / f"{service.kind}-{next(_numbers)}"  # Java reuses connections by path
    link.symlink_to(path.parent)
    return str(link / path.name)
