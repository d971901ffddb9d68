"""Checks before the start of a run that the program can run with the options, and can continue from the checkpoint."""

from wallaroo_runtime.archive.archive import check_platform
from wallaroo_runtime.checkpoint.checkpoint import check_program
from wallaroo_runtime.checkpoint.url import check_services
from wallaroo_runtime.durable.directory import Directory, LocalDirectory
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.peer.configuration import gateway_sources
from wallaroo_runtime.peer.remote import sources_by_gateway
from wallaroo_runtime.program.application import Application, check_runnable
from wallaroo_runtime.program.interpreter import check_interpreter
from wallaroo_runtime.run.options import RunOptions
from wallaroo_runtime.run.realtime import chosen_mode
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.secret import check_secrets


def check_application(options: RunOptions, application: Application) -> None:
    """Refuse an application that cannot run with the options.

    Raises:
        RunError: T211, W404, R608 or R655 if the program does not fit the options; R755 if real-time mode cannot run
            it; R608, R616, R640 or R647 if the options for remote services are wrong.
    """
    topology, archive, is_here = application.topology, application.archive, options.runs_code_here
    check_runnable(topology)
    check_secrets(topology.document)
    check_interpreter(options.spark.worker_python, topology, is_here=is_here, is_packed=bool(archive))
    if archive and is_here:
        check_platform(application.path, archive.manifest)
    if options.available_now:
        check_ends(topology)
    check_services(options.checkpoint.location, options.remote)
    chosen_mode(options).check(options, topology)
    options.remote.check()
    if options.remote.gateways:
        sources_by_gateway(topology, options.remote)


def check_ends(topology: Topology) -> None:
    """Refuse sources whose ends are not known at the start (`--available-now`).

    Raises:
        RunError: R608 if there is such a source.
    """
    for source in gateway_sources(topology):
        reason = (
            f'--available-now: source "{source.name}" has no end that is known at the start, as files and topics have'
        )
        raise RunError.of("R608", USAGE, reason=reason, fix="leave it out and give --stop-when-idle SECONDS, e.g. 10")


def check_continues(options: RunOptions, application: Application) -> None:
    """Refuse a changed program that does not fit the checkpoint, while the former program still runs (`--watch`).

    R790 cannot be checked here. Only after the end of the former program it is known whether messages are left that
    only the former program can process.

    Raises:
        RunError: R603, R605, R615 or R757 if the program does not fit the checkpoint.
    """
    checkpoint = options.checkpoint.directory(application)
    directory: Directory = LocalDirectory(checkpoint)
    if options.checkpoint.location:
        from wallaroo_runtime.spark.machine.hadoop import HadoopDirectory
        from wallaroo_runtime.spark.session import running_session

        session = running_session()
        if session is None:
            return
        directory = HadoopDirectory(session, options.checkpoint.location)
    check_program(directory, application.topology, options.mode, accepts_changed=options.checkpoint.accepts_changed)
