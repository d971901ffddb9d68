"""Starts workers on this machine for purposes other than Spark's tasks: for a gateway, and to check their setup."""

from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

from wallaroo_runtime.peer.configuration import needs_worker
from wallaroo_runtime.peer.hosted_workers import HostedWorkers
from wallaroo_runtime.program.application import Application
from wallaroo_runtime.run.options import RunOptions


def check_setups(options: RunOptions, application: Application) -> None:
    """Run the setups of an archive's programs before Spark starts. Without an archive the setups have run already.

    Raises:
        RunError: The error of a setup, e.g. T207 for a value of this environment; W403 if the setup declares other
            parts.
    """
    if application.archive is None or not options.runs_code_here or options.app.attach:
        return
    topology, archive, python = application.topology, application.archive, options.spark.worker_python
    with (
        TemporaryDirectory(prefix="wallaroo-") as directory,
        closing(HostedWorkers(topology, Path(directory), archive, python)) as workers,
    ):
        workers.check()


def start_gateway_workers(options: RunOptions, application: Application, stack: ExitStack) -> dict[str, str]:
    """Start workers on this machine for a local gateway. The gateway cannot reach workers on a cluster's executors.

    The output of the workers goes to a folder of the run's directory.

    Returns:
        gRPC target of each worker, by name.
    """
    directory = options.checkpoint.directory(application) / "workers"
    workers = HostedWorkers(application.topology, directory, application.archive, options.spark.worker_python)
    stack.callback(workers.close)
    sources = filter(needs_worker, application.topology.sources())
    return {source.worker: workers.target(source.worker) for source in sources}
