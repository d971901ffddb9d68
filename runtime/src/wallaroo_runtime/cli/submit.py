"""`wallaroo submit FILE --master URL`: run a packed application, or a topology, on a Spark cluster.

In client mode the driver is a process on this machine. In cluster mode, on YARN and Kubernetes, spark-submit starts it
on the cluster. `--dry-run` prints the command and starts nothing.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wallaroo.emit.module import module_command
from wallaroo_runtime.cli.conf import conf_of, settings_help
from wallaroo_runtime.cli.gateway_option import remote_of
from wallaroo_runtime.cli.option import Split, arguments_of_app, extracted, split, tell_split
from wallaroo_runtime.cli.parser import app_of, wrong_usage
from wallaroo_runtime.cli.run import add_run_options, location_of, refuse_arguments
from wallaroo_runtime.cli.run_option import ONLY_RUN, OWN, SUBMIT
from wallaroo_runtime.console.json_line import print_result
from wallaroo_runtime.program.app import AppKind, resolve
from wallaroo_runtime.service.credential import AUTHORITY, TOKEN_FILE
from wallaroo_runtime.system.java import QUICK_JAVA

if TYPE_CHECKING:
    from wallaroo_runtime.topology.model import Topology

# Options of spark-submit, and the options of this command that replace them.
OF_SPARK = {
    "--supervise": "--restart on-failure",
    "--driver-memory": "--conf spark.driver.memory=SIZE",
    "--executor-memory": "--conf spark.executor.memory=SIZE",
    "--executor-cores": "--conf spark.executor.cores=N",
    "--total-executor-cores": "--conf spark.cores.max=N",
    "--num-executors": "--conf spark.executor.instances=N",
    "--packages": "--conf spark.jars.packages=NAMES",
    "--jars": "--conf spark.jars=FILES",
    "--queue": "--conf spark.yarn.queue=NAME",
    "--properties-file": "--conf NAME=VALUE for each property",
}
# Settings that the JVM of a driver needs before it starts.
OF_DRIVER = ("spark.driver.memory",)


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser(
        "submit",
        help="run a packed application on a Spark cluster",
        usage="wallaroo submit FILE [--master URL] [OPTIONS]",
        description=__doc__,
        epilog=f"{settings_help()}\n\nOf the options of `run` it does not take {', '.join(ONLY_RUN)}.",
    )
    add_run_options(parser, is_submitted=True)
    add = parser.add_argument
    add("--deploy-mode", choices=["client", "cluster"], default="client", help="where the driver runs; default: client")
    add("--restart", choices=["never", "on-failure"], default="never", help="run a driver that failed again")
    add("--dry-run", action="store_true", help="print the command, start nothing")


def split_arguments(tokens: list[str]) -> Split:
    """Separate the command's own arguments from those for an application."""
    own, rest = extracted(tokens, SUBMIT)
    parts = split(rest, frozenset(OWN))
    for name in (token.partition("=")[0] for token in parts.own):
        if name in ONLY_RUN:
            raise wrong_usage(reason=f"{name} is an option of `run`; `submit` does not have it", fix="leave it out")
    parts.own += own
    return parts


def run(arguments: argparse.Namespace) -> int:
    """Submit the application to a cluster. In client mode, return when the application has ended."""
    # Late: they import archives and Spark.
    from wallaroo_runtime.checkpoint.manifest import REALTIME
    from wallaroo_runtime.checkpoint.url import check_services
    from wallaroo_runtime.program.application import check_runnable, load_application
    from wallaroo_runtime.run.realtime import check_realtime
    from wallaroo_runtime.spark.machine.master import check_master
    from wallaroo_runtime.submit.submit import DriverKeeper, Submission

    tell_split(arguments.parts)
    if not (arguments.json or any(token.partition("=")[0] == "--master" for token in arguments.parts.own)):
        print("note: without --master it runs on this machine, as with `run`", file=sys.stderr)
    app = app_of(arguments, "wallaroo submit")
    in_cluster = arguments.deploy_mode == "cluster"
    _check(arguments, app, in_cluster)
    conf = conf_of(arguments.conf)
    remote = remote_of(arguments, conf)
    check_services(location_of(arguments), remote)
    topology = load_application(app, (), arguments.inputs, arguments.outputs).topology
    check_runnable(topology)
    if arguments.mode == REALTIME:
        check_realtime(topology, master=arguments.master, remote=remote)
    _, tokens = extracted([token for token in arguments.parts.own[1:] if token != app], SUBMIT)
    if in_cluster:
        command = _cluster_command(arguments, app, topology, conf, tokens=tokens)
    else:
        driver = "wallaroo_runtime.cli.start", "run", str(Path(app).absolute())
        command = module_command(sys.executable, *driver, *tokens)
    if arguments.dry_run:
        print(shlex.join(command))
        return 0
    check_master(arguments.master)
    if in_cluster:
        return Submission(command, arguments.master, partial(tell, as_json=arguments.json)).run()
    return DriverKeeper(command, restarts=arguments.restart == "on-failure").run()


def _cluster_command(
    arguments: argparse.Namespace, app: str, topology: "Topology", conf: Mapping[str, str], *, tokens: list[str]
) -> list[str]:
    """Return the command of spark-submit for cluster mode. Both spark-submit and the driver get the user's settings."""
    from wallaroo_runtime.checkpoint.url import is_remote
    from wallaroo_runtime.spark.machine.jar import operator_jar
    from wallaroo_runtime.spark.machine.settings import JARS, REMOTE_FILES, SETTINGS, authentication, with_jar
    from wallaroo_runtime.spark.machine.yarn import driver_settings
    from wallaroo_runtime.spark.source.kafka_connector import connector_jars, uses_kafka

    master, path = arguments.master, Path(resolve(app).path)
    settings = {name: SETTINGS[name] for name in OF_DRIVER} | {"spark.driver.extraJavaOptions": QUICK_JAVA}
    settings |= authentication(master)
    if is_remote(location_of(arguments)):
        settings |= REMOTE_FILES
    if master == "yarn":
        settings |= driver_settings(os.environ)
    jars = conf.get(JARS)
    if uses_kafka(topology):
        jars = ",".join(connector_jars(conf.get(JARS, "")))
    shipped = {name: Path(conf[name]) for name in (TOKEN_FILE, AUTHORITY) if name in conf}
    here = {name: file.name for name, file in shipped.items()}  # the driver gets copies
    settings |= {**conf, JARS: with_jar(jars, operator_jar()), **here}
    _, tokens = extracted(tokens, {"--master": True})
    tokens += [token for pair in here.items() for token in ("--conf", "=".join(pair))]  # the last one of a name counts
    pyspark = find_spec("pyspark")
    assert pyspark is not None and pyspark.origin is not None
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.origin).parent)
    pairs = [item for pair in settings.items() for item in ("--conf", "=".join(pair))]
    command = [f"{home}/bin/spark-submit", "--master", master, "--deploy-mode", "cluster", *pairs]
    files = ",".join(str(file.absolute()) for file in (path, *shipped.values()))
    driver = str(Path(__file__).with_name("start.py"))
    return [*command, "--files", files, driver, "run", path.name, "--master", master, *tokens]


def tell(text: str, *, as_json: bool) -> None:
    """Print a message about the submitted application, as text or as JSON."""
    print_result({"state": "submitted", "note": text}, text, as_json=as_json, stream=sys.stderr)


def _check(arguments: argparse.Namespace, app: str, in_cluster: bool) -> None:
    if in_cluster and not arguments.master.startswith(("yarn", "k8s://")):
        reason = f"{arguments.master} runs no Python driver in cluster mode"
        fix = "use --deploy-mode client on a machine that stays, with --restart on-failure"
        raise wrong_usage(reason=reason, fix=fix)
    if resolve(app).kind not in (AppKind.ARCHIVE, AppKind.TOPOLOGY):
        reason, fix = f"{app} is a program; a cluster takes what is packed", f"`wallaroo pack {app} -o app.tar.gz`"
        raise wrong_usage(reason=reason, fix=fix)
    for name in (token.partition("=")[0] for token in arguments_of_app(arguments.parts)):
        if name in OF_SPARK:
            raise wrong_usage(reason=f"{name} is an option of spark-submit", fix=f"give {OF_SPARK[name]}")
    refuse_arguments(arguments.parts)
    if in_cluster and not arguments.checkpoint:
        reason = "in cluster mode the driver has no directory that stays"
        raise wrong_usage(reason=reason, fix="give --checkpoint, on a disk that every machine sees")
    if in_cluster and arguments.restart != "never":
        reason = "--restart is for client mode; in cluster mode the cluster restarts drivers"
        raise wrong_usage(reason=reason, fix="on YARN: --conf spark.yarn.maxAppAttempts=10")
