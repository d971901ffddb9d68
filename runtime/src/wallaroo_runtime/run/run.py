"""Runs an application: from the load of the program to the end of all parts."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from wallaroo.worker.host import trace
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.end_note import STOPPED as BY_SIGNAL
from wallaroo_runtime.checkpoint.end_note import noting_end
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.registry import registered
from wallaroo_runtime.checkpoint.url import check_answer
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.configuration import open_sources
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.program.application import Application, load_application, unused_addresses
from wallaroo_runtime.program.attach import attached
from wallaroo_runtime.run.check import check_application
from wallaroo_runtime.run.end_condition import EndCondition, ends_of
from wallaroo_runtime.run.flow import Flow
from wallaroo_runtime.run.gateway_workers import check_setups, start_gateway_workers
from wallaroo_runtime.run.goka import tell_left
from wallaroo_runtime.run.history import records_of, tell_past
from wallaroo_runtime.run.log_mark import mark_begin, mark_stop
from wallaroo_runtime.run.monitor_feed import MonitorFeed, start_monitor
from wallaroo_runtime.run.options import RunOptions
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.run.realtime import chosen_mode
from wallaroo_runtime.run.signals import BROKEN_OFF, RunStop, end_java, ending_java, stop_signals
from wallaroo_runtime.run.snapshot import STARTING, Reporter, listening
from wallaroo_runtime.run.spark_session import open_directory, spark_settings, start_session
from wallaroo_runtime.run.start_over import start_over
from wallaroo_runtime.run.topic_watch import watch_topics
from wallaroo_runtime.run.topics import until_answered
from wallaroo_runtime.run.worker_output import WorkerOutput
from wallaroo_runtime.spark.machine.check import check_machine
from wallaroo_runtime.spark.machine.master import check_master, cores
from wallaroo_runtime.spark.machine.virtual_machine import VirtualMachine, is_launched, launch
from wallaroo_runtime.spark.state_store.state_query import states_of_run
from wallaroo_runtime.system.process import report_ready

if TYPE_CHECKING:
    from wallaroo_runtime.run.mode import Query

STOPPING, STOPPED = "stopping", "stopped"
LOOK_S, PROGRESS_S, SIGNALS_S = 0.1, 1.0, 1.0


def execute(options: RunOptions, reporter: Reporter) -> int:
    """Run an application until a signal stops it, or it is idle or complete.

    Returns:
        The exit code: 0, or the code of a signal that came before the application was initialized.

    Raises:
        RunError: The run cannot start, or has failed. All parts of the run have ended.
    """
    with stop_signals() as stopped:
        try:
            run_once(options, reporter, RunEnd(stopped))
        except (KeyboardInterrupt, RunError) as error:
            if not stopped.ended_start(error):
                raise
            reporter.event(STOPPED, BROKEN_OFF)
            return stopped.exit_code
    return 0


class RunEnd(NamedTuple):
    """The ways in which a run can end, and whether Spark ends with it.

    Attributes:
        stopped: The flag that signals set.
        ends: Conditions that end the run, in addition to the conditions from the options.
        spark: Stack that ends Spark later, after several runs (`--watch`); None if Spark ends with the run.
        opened: Called when the checkpoint is open, and `--fresh` has removed its former content.
    """

    stopped: RunStop
    ends: tuple[EndCondition, ...] = ()
    spark: ExitStack | None = None
    opened: Callable[[], None] = lambda: None


def run_once(options: RunOptions, reporter: Reporter, ending: RunEnd, application: Application | None = None) -> None:
    """Run an application until a condition of `ending` or of the options ends the run.

    Args:
        application: The application that `options` name, if it is loaded already.

    Raises:
        RunError: The run cannot start, or has failed. All parts of the run have ended, except Spark if `ending` has it.
    """
    app = options.app
    if application is None:
        tell = partial(reporter.doing, STARTING, is_shared=True)
        application = load_application(app.name, app.args, app.inputs, app.outputs, tell)
    topology = application.topology
    if package := trace.missing():
        reporter.warn(trace.not_installed(package))
    for finding in unused_addresses(topology, app.inputs, app.outputs):
        reporter.warn(finding)
    check_application(options, application)
    running = application._replace(topology=attached(topology, app.attach))
    check_machine()
    check_master(options.spark.master)
    mode = chosen_mode(options)
    options = replace(options, bounds=mode.bounds(options.bounds))
    check_answer(options.checkpoint.location)
    held = HeldDirectory.take(options.checkpoint.directory(application))
    try:
        if options.checkpoint.fresh:
            start_over(held, topology.name, reporter, ending.stopped.check)
        held.check_links()
        with (
            registered(held.path, topology.name, application.path) as note_chosen,
            noting_end(held.path, ending.stopped.ended_start) as note,
        ):
            ending.stopped.check()
            partitions, buckets = mode.layout(options.spark)
            checkpoint = Checkpoint.open(
                held,
                topology,
                shuffle_partitions=partitions,
                buckets_per_partition=buckets,
                remote=options.remote,
                directory=open_directory(options, topology, held, reporter, ending.stopped),
                mode=options.mode,
                continues_goka=options.checkpoint.continues_goka,
                accepts_changed=options.checkpoint.accepts_changed,
            )
            note.has_begun = True
            note_chosen()
            ending.opened()
            if not options.checkpoint.location:
                mark_begin(checkpoint.path / "logs")
            if not checkpoint.continues:
                reporter.note(f"new checkpoint in {checkpoint.directory}")
            reporter.note(f"logs in {checkpoint.path / 'logs'}")
            plan = checkpoint.plan()
            note.reason = _run(options, reporter, application=running, plan=plan, checkpoint=checkpoint, ending=ending)
    finally:
        held.release()


def _run(
    options: RunOptions,
    reporter: Reporter,
    *,
    application: Application,
    plan: Plan,
    checkpoint: Checkpoint,
    ending: RunEnd,
) -> str:
    """Start gateway, egress, query and workers, watch them and end them. Return the reason of the end."""
    stopped, topology, logs = ending.stopped, application.topology, checkpoint.path / "logs"
    mode = chosen_mode(options)
    for finding in open_sources(topology):
        reporter.warn(finding)
    with ExitStack() as stack:
        # The monitor's port is checked before Spark starts, the slowest part.
        feed = start_monitor(options, reporter, topology, plan, checkpoint.path, stack) if options.monitor else None
        reporter = feed or reporter
        reporter.doing(STARTING, "starting the application" if is_launched() else "starting Spark")
        settings = spark_settings(options, topology)
        stopped.check()
        java = launch(options.spark.master, logs, settings, makes_archive=True)
        if java is not None:
            (ending.spark or stack).callback(end_java, java, reporter)
        with ending_java(java if cores(options.spark.master) else None, stopped):
            starts = until_answered(partial(mode.starts, topology, checkpoint, options, reporter), reporter)
            if not options.checkpoint.fresh:
                tell_left(checkpoint, reporter)
            peers = Peers(
                topology, plan, checkpoint, options.remote, options.bounds, fresh=options.checkpoint.fresh,
                starts=starts, sets_aside=options.on_error == "dead_letter",
            )  # fmt: skip
            stack.enter_context(peers.telling_refused(reporter.warn))
            flow, query = _start(
                options,
                reporter,
                feed=feed,
                stack=stack,
                application=application,
                plan=plan,
                checkpoint=checkpoint,
                java=java,
                peers=peers,
                ending=ending,
            )
            stopped.begin()
        from wallaroo_runtime.spark.failure.translate import JavaEnded

        reporter.initialized(listening(topology, peers.addresses()), checkpoint.path)
        report_ready()
        try:
            reason = _watch(options, reporter, flow, ending, feed)
        except JavaEnded:
            # Java that we start takes no signals. But a signal to a container may reach the Java of spark-submit first.
            if not stopped.wait(SIGNALS_S):
                raise
            reason = BY_SIGNAL
        reporter.doing(STOPPING, "stopping: sinks get what is ready for them")
        mark_stop(logs)
        for gateway in peers.gateways:
            gateway.stop()
        query.stop()
        flow.show_output(reporter.output, whole=False)
        peers.egress.stop()  # the egress delivers waiting output for some seconds; the next run delivers the rest
        for finding in flow.new_findings():
            reporter.warn(finding)
        reporter.progress(last := flow.snapshot(STOPPED))
        if java is not None:
            java.has_worked = last.run["messages_in"] > 0
        if (failure := flow.failure(last)) is not None:
            raise failure
        return reason


def _start(
    options: RunOptions,
    reporter: Reporter,
    *,
    feed: MonitorFeed | None,
    stack: ExitStack,
    application: Application,
    plan: Plan,
    checkpoint: Checkpoint,
    java: VirtualMachine | None,
    peers: Peers,
    ending: RunEnd,
) -> tuple[Flow, "Query"]:
    """Start gateway, egress, query and workers while Java starts; `stack` ends them. A signal interrupts the start."""
    topology, mode, logs = application.topology, chosen_mode(options), checkpoint.path / "logs"
    check = ending.stopped.check
    check()
    peers.launch(stack)
    from wallaroo_runtime.spark.failure.translate import needing_java
    from wallaroo_runtime.spark.machine.log_watch import waiting_for_executors, watching_master
    from wallaroo_runtime.spark.options import QueryOptions
    from wallaroo_runtime.spark.session import begin_session, open_cluster, stop_session
    from wallaroo_runtime.spark.worker_start import local_specs, start_early

    create = partial(start_session, options, topology, checkpoint.manifest.shuffle_partitions, logs, java)
    wait_session = begin_session(create) if java is not None else create
    peers.start()
    for finding in checkpoint.repairs:
        reporter.warn(finding)
    output = WorkerOutput(logs)
    tell_past(reporter, checkpoint, peers.received_before if mode.is_counted(topology) else None, options.spark.asked)
    check_setups(options, application)
    check()
    if java is not None and options.runs_code_here and application.archive is None:
        specs = local_specs(topology, logs, options.bounds.state_cache_bytes, options.spark.worker_python)
        start_early(specs, plan, java.process.pid)
    session = wait_session()
    (ending.spark or stack).callback(stop_session, session)
    for opened in open_cluster(session.sparkContext.getConf()):
        reporter.warn(opened)
    with needing_java(logs / "spark.log"):
        topic_ids = peers.topic_ids()
        if mode.reads_kafka:
            topic_ids = mode.begin(session, plan, checkpoint, options.checkpoint, peers, reporter)
    check()
    reporter.doing(STARTING, "starting the query and its workers")
    if feed is not None:
        feed.begin(peers)
    query_options = QueryOptions(
        checkpoint=f"{checkpoint.directory}/{checkpoint.manifest.spark}",
        logs=logs,
        journals=peers.journals,
        output=peers.output,
        on_error=options.on_error,
        cache_bytes=options.bounds.state_cache_bytes,
        max_outbox_bytes=options.bounds.max_outbox_bytes,
        archive=application.archive,
        python=options.spark.worker_python,
        tell_batch=feed.tell_batch if feed is not None else None,
        tell_live=feed.tell_live if feed is not None else None,
        tell_visits=peers.tell_visits,
        records=records_of(checkpoint),
        passes_lost=bool(options.checkpoint.topic_reset),
        available_now=options.available_now,
    )
    with (
        needing_java(logs / "spark.log"),
        waiting_for_executors(options.spark.master, logs / "spark.log", reporter.note),
    ):
        query = mode.start(session, plan, topology, query_options, peers)
    stack.callback(query.stop)
    stack.enter_context(watching_master(options.spark.master, logs / "spark.log", reporter.note))
    is_here = options.runs_code_here
    if feed is not None:
        has_room = mode.has_room(options.spark.master)
        place = checkpoint.directory, checkpoint.manifest.spark
        states = states_of_run(session, *place, plan, query.targets, asks=is_here) if has_room else None
        feed.attach(query, states)
    if peers.waits_for_worker:
        peers.serve_sources(query.targets if is_here else start_gateway_workers(options, application, stack))
    letters = "DIR_OF_THE_EGRESS" if options.remote.egress else str(checkpoint.path)
    checkpoint.record_topics(topic_ids)  # only now, because gateways had to reset their topics first
    topics = watch_topics(stack, topology, topic_ids, session if mode.reads_kafka else None)
    if feed is not None:
        feed.watch(topics)
    flow = Flow(peers, query, reporter.note, letters, output, topics)
    flow.check()
    return flow, query


def _watch(options: RunOptions, reporter: Reporter, flow: Flow, ending: RunEnd, feed: MonitorFeed | None) -> str:
    """Watch the run until it must end, and return the reason. Raise the error of a part that fails."""
    now = time.monotonic()
    ends: list[EndCondition] = [*ending.ends, *ends_of(options, now, flow.activity, flow.is_complete)]
    reported_at, pause, quiet_s = now, LOOK_S, chosen_mode(options).quiet_look_s
    while not ending.stopped.wait(pause):
        flow.check()
        if feed is not None:
            feed.look()
        flow.show_output(reporter.output)
        for finding in flow.new_findings():
            reporter.warn(finding)
        now = time.monotonic()
        if now - reported_at >= PROGRESS_S:
            reported_at, snapshot = now, flow.snapshot("running")
            reporter.progress(snapshot)
            pause = quiet_s if snapshot.is_quiet else LOOK_S
        if (end := next((each for each in ends if each.holds(now)), None)) is not None:
            return end.text
    return BY_SIGNAL
