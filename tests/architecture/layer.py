"""The import rules: ARCHITECTURE.md, "Packages and import rules"."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from architecture.source import PYTHON_SDK, RUNTIME, Import, imports, module_of

# What each package of the runtime may import; the packages stand from top to bottom.
IMPORTS: dict[str, set[str]] = {
    "cli": {
        *("archive", "case", "checkpoint", "console", "durable", "errors", "gateway", "kafka", "maintenance"),
        *("memory", "monitor", "peer", "plan", "program", "run", "service", "spark", "submit", "system", "topology"),
        "worker",
    },
    "console": {"gateway", "run"},
    "case": {"errors", "memory", "topology"},
    "run": {
        *("archive", "checkpoint", "durable", "errors", "kafka", "monitor", "peer", "plan", "program", "spark"),
        *("service", "storage", "system", "topology", "worker"),
    },
    "maintenance": {
        *("archive", "checkpoint", "durable", "errors", "gateway", "kafka", "peer", "plan", "service", "spark"),
        *("storage", "system", "topology"),
    },
    # What PySpark jobs import.
    "dataframe": {"errors", "peer", "plan", "program", "spark", "storage", "topology", "worker"},
    "monitor": {"checkpoint", "durable", "errors", "plan", "service", "spark", "system", "topology", "worker"},
    "submit": {"checkpoint", "errors", "system", "worker"},
    "checkpoint": {"durable", "errors", "peer", "plan", "program", "service", "storage", "system", "topology"},
    "peer": {
        *("archive", "durable", "egress", "errors", "gateway", "kafka", "plan", "service", "storage", "system"),
        *("topology", "worker"),
    },
    # Two engines for a plan: neither knows the other.
    "spark": {
        *("archive", "durable", "errors", "kafka", "plan", "service", "storage", "system", "topology", "worker"),
    },
    "memory": {"errors", "gateway", "plan", "program", "service", "storage", "system", "topology", "worker"},
    "gateway": {"durable", "errors", "kafka", "service", "storage"},
    "egress": {"durable", "errors", "kafka", "service", "storage", "system"},
    "kafka": {"durable", "errors", "system"},
    "storage": {"durable", "errors", "service", "system"},
    "service": {"durable", "errors", "system"},
    "program": {"archive", "durable", "errors", "system", "topology", "worker"},
    "worker": {"archive", "errors", "system", "topology"},
    "archive": {"errors", "topology"},
    "plan": {"errors", "topology"},
    "topology": {"errors"},
    "durable": {"errors"},
    "system": {"errors"},
}
# The rooms of `spark` from top to bottom: each imports rooms below it alone.
SPARK_ROOMS = ("goka", "state_store", "realtime", "source", "machine", "failure")
# The same of the runtime's Java, whose files have at most so many lines.
JAVA_IMPORTS: dict[str, set[str]] = {
    "microbatch": {"account", "bucket", "journal", "message", "query", "rpc", "stage", "state", "worker"},
    "realtime": {"account", "bucket", "engine", "journal", "message", "query", "sink"},
    "state": {"bucket", "message", "query"},
    "sink": {"query"},
    "engine": {"account", "bucket", "deliver", "journal", "message", "query", "stage"},
    "deliver": {"account", "bucket", "journal", "message", "query", "rpc"},
    "stage": {"account", "bucket", "message", "query", "worker"},
    "account": {"bucket", "journal", "message", "query"},
    "worker": {"message", "query", "rpc"},
    "journal": {"message", "query", "rpc"},
    "rpc": {"query"},
    "query": {"message"},
    "message": set(),
    "bucket": set(),
}
JAVA_LINES = 300
# Libraries that only some packages may import.
ONLY_IN = {
    "pyspark": {"dataframe", "spark"},
    "py4j": {"dataframe", "spark"},
    "grpc": {"egress", "gateway", "peer", "service", "storage", "worker"},
    "grpc_health": {"worker"},
    "prometheus_client": {"monitor"},
    "shtab": {"cli"},
}
# What each room of the Python SDK may import of it, from top to bottom; the empty name is the package itself.
LOWEST = {"component", "diagnostic", "message"}
SDK_IMPORTS: dict[str, set[str]] = {
    "": {*LOWEST, "declare", "endpoint"},
    "testing": {"diagnostic", "message"},
    "worker": {"diagnostic", "emit", "worker.bucket", "worker.host"},
    "worker.host": {*LOWEST, "emit", "worker._proto", "worker.bucket", "worker.stage", "worker.value"},
    "worker.bucket": {
        *("check", "diagnostic", "message"),
        *("worker._proto", "worker.stage", "worker.value", "worker.window"),
    },
    "worker.stage": {*LOWEST, "check", "worker._proto", "worker.value", "worker.window"},
    "worker.window": {"check", "component", "worker.value"},
    "worker.value": {*LOWEST, "check", "worker._proto"},
    "experimental": {"component", "connector", "diagnostic", "emit"},
    # States of groups are messages of protobuf; workers alone write and read them.
    "goka": {*LOWEST, "check", "declare", "emit", "endpoint", "worker._proto"},
    "emit": {*LOWEST, "check", "declare", "endpoint"},
    "declare": {*LOWEST, "check", "connector", "endpoint"},
    "connector": {"check", "component", "diagnostic", "endpoint"},
    "endpoint": {*LOWEST, "check"},
    "check": LOWEST,
    "component": {"diagnostic", "message"},
    "message": {"diagnostic"},
    "diagnostic": set(),
    "worker._proto": set(),
}
# Idea 10: what the runtime takes from the Python SDK.
SHARED = (
    "wallaroo.diagnostic",
    "wallaroo.emit.module",
    "wallaroo.emit.program",
    "wallaroo.experimental.protocol",
    "wallaroo.experimental.tcp",
    "wallaroo.experimental.transaction",
    "wallaroo.goka.state",
    "wallaroo.message",
    "wallaroo.worker._proto",
    "wallaroo.worker.host.debugger",
    "wallaroo.worker.host.rpc",
    "wallaroo.worker.host.trace",
)
# The engine in memory runs the calls of a Python worker in its own process.
RUNS_CALLS = {"memory": ("wallaroo.worker.host.call", "wallaroo.worker.value.kafka_record")}
# The one module of the SDK that knows the runtime: it imports it when a test starts an application.
TEST_KIT = f"{PYTHON_SDK}/wallaroo/testing.py"
HOST_LIBRARIES = ("grpc", "grpc_health", "google", "opentelemetry")
# Otherwise the SDK imports a library only where the program needs it: when a codec names a message of protobuf, or when
# it has an emitter, a view or a lookup.
LIBRARIES = {
    f"{PYTHON_SDK}/wallaroo/message/codec.py": ("google",),
    f"{PYTHON_SDK}/wallaroo/goka/client.py": ("confluent_kafka",),
}
# What connector programs know of the SDK; clients of other systems are imported when a program starts (`library`).
CONNECTORS_USE = (
    "wallaroo.connector",
    "wallaroo.diagnostic",
    "wallaroo.experimental",
    "wallaroo_connectors",
)


def said(found: Import, why: str) -> str:
    return f"{found.file}:{found.line}: imports {found.module}; {why}"


def runtime_violations(file: str, text: str) -> Iterator[str]:
    """Yield the imports of a file of the runtime that break a rule."""
    for found in imports(file, text):
        parts = Path(found.file).relative_to(RUNTIME).parts
        package = parts[1] if len(parts) > 2 else ""
        top, *rest = found.module.split(".")
        known = IMPORTS.get(package, set())
        if top == "wallaroo_runtime" and rest and package and rest[0] not in {package, *known}:
            yield said(found, f"{package} may import {', '.join(sorted(known)) or 'nothing: name it in IMPORTS'}")
        if package == "spark" and rest[:1] == ["spark"] and parts[2] in SPARK_ROOMS:
            above = SPARK_ROOMS[: SPARK_ROOMS.index(parts[2])]
            if rest[1] in above:
                yield said(found, f"in `spark` {parts[2]} stands below {', '.join(above)}")
        if package not in ONLY_IN.get(top, {package}):
            yield said(found, f"only {', '.join(ONLY_IN[top])} may")
        shared = SHARED + RUNS_CALLS.get(package, ())
        if top == "wallaroo" and not found.module.startswith(shared):
            yield said(found, f"the runtime uses {', '.join(shared)} alone")
        if not package and top == "wallaroo_runtime":
            yield said(found, "the top package imports nothing")


def room_of(module: str) -> str:
    """Return the room of the Python SDK that a module, or a name in it, is in."""
    inside = module.removeprefix("wallaroo").lstrip(".") + "."
    return max((room for room in SDK_IMPORTS if not room or inside.startswith(room + ".")), key=len)


def java_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and package of each name of ours in a Java file, imported or written out."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("package "):
            yield from ((number, package) for package in re.findall(r"\borg\.wallaroo\.spark\.(\w+)", line))


def java_violations(file: str, text: str) -> Iterator[str]:
    """Yield what breaks a rule in a file of the runtime's Java: an import, its length, a long `package-info.java`."""
    package, lines = Path(file).parent.name, text.count("\n")
    known = JAVA_IMPORTS.get(package, set())
    for number, name in java_names(text):
        if name not in {package, *known}:
            yield f"{file}:{number}: {package} may import {', '.join(sorted(known)) or 'nothing'}, not {name}"
    most = 2 if file.endswith("package-info.java") else JAVA_LINES
    if lines > most:
        yield f"{file}: {lines} lines; at most {most}"


def sdk_violations(file: str, text: str) -> Iterator[str]:
    """Yield the imports of a file of the Python SDK that break a rule."""
    room = room_of(module_of(file, PYTHON_SDK))
    known = SDK_IMPORTS[room]
    for found in imports(file, text):
        top = found.module.split(".")[0]
        hosts = room.startswith("worker")
        if top == "wallaroo":
            if room_of(found.module) not in {room, *known}:
                yield said(found, f"{room or 'wallaroo'} may import {', '.join(sorted(known)) or 'nothing'}")
        elif top == "wallaroo_runtime":
            if found.file != TEST_KIT or not found.module.startswith("wallaroo_runtime.memory"):
                yield said(found, "the SDK does not know the runtime")
        elif top not in sys.stdlib_module_names and top not in (
            HOST_LIBRARIES if hosts else LIBRARIES.get(found.file, ())
        ):
            yield said(found, "outside wallaroo.worker the SDK uses the standard library alone")


def connector_violations(file: str, text: str) -> Iterator[str]:
    """Yield the imports of a connector program that break a rule."""
    for found in imports(file, text):
        is_known = found.module.startswith(tuple(f"{name}." for name in CONNECTORS_USE))
        if not is_known and found.module.split(".")[0] not in sys.stdlib_module_names:
            yield said(found, f"connector programs use {', '.join(CONNECTORS_USE)} and the standard library alone")
