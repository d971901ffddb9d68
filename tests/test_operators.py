"""The operators' documentation: its commands parse, and the Kubernetes example has the form that its parts expect."""

import configparser
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from py4j.java_collections import JavaMap
from pyspark.java_gateway import launch_gateway

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from wallaroo_runtime.cli import dead_letters, egress, gateway, pack, run, state, submit
from wallaroo_runtime.cli.conf import OWN, conf_of
from wallaroo_runtime.cli.conf import SETTINGS as RUN_SETTINGS
from wallaroo_runtime.cli.parser import Parser
from wallaroo_runtime.errors import TOPOLOGY, USAGE
from wallaroo_runtime.service.credential import read_token
from wallaroo_runtime.spark.machine.settings import (
    LOCAL_SETTINGS,
    REMOTE_FILES,
    SETTINGS,
    YARN_SETTINGS,
    memory_settings,
)
from wallaroo_runtime.spark.source.kafka_connector import coordinates
from wallaroo_runtime.topology.override import parse_addresses

# Of a user's choice, of Hadoop, of a state store, ours, and one that Spark reads by its name alone.
FREE = (
    *("spark.kubernetes.executor.volumes.", "spark.hadoop.", "spark.sql.streaming.stateStore.rocksdb."),
    "spark.wallaroo.",
    "spark.sql.streaming.checkpointFileManagerClass",
)
DOCS = Path(__file__).resolve().parents[1] / "docs"
TEXT = (DOCS / "operators.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
    if not language
]
(UNIT_TEXT,) = re.findall(r"^```ini\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
UNIT = configparser.ConfigParser(interpolation=None)
UNIT.optionxform = str  # type: ignore[assignment,method-assign]
UNIT.read_string(UNIT_TEXT)
COMMANDS.append(UNIT["Service"]["ExecStart"].removeprefix("/opt/wallaroo/bin/"))
MODULES: dict[str, ModuleType] = {
    "pack": pack,
    "run": run,
    "submit": submit,
    "gateway": gateway,
    "egress": egress,
    "dead-letters": dead_letters,
    "state": state,
}


def manifests() -> dict[str, Any]:
    documents = list(yaml.safe_load_all((DOCS / "kubernetes" / "driver.yaml").read_text(encoding="utf-8")))
    assert all({"apiVersion", "kind", "metadata"} <= set(document) for document in documents)
    return {document["kind"]: document for document in documents}


def parsers() -> dict[str, Parser]:
    subparsers = Parser(prog="wallaroo").add_subparsers(parser_class=Parser)
    for module in MODULES.values():
        module.add_parser(subparsers)
    return dict(subparsers.choices)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_of_the_documentation(command: str) -> None:
    program, verb, *arguments = shlex.split(command)
    assert program == "wallaroo"
    if hasattr(MODULES[verb], "split_arguments"):
        parts = MODULES[verb].split_arguments(arguments)
        assert (parts.without_effect, parts.suspicious) == ([], [])
        assert not [token for token in parts.app if token.startswith("-") and token not in ("--in", "--out")]
        arguments = parts.own
    parsers()[verb].parse_args(arguments)  # an unknown one raises


def options(parser: Parser) -> set[str]:
    """Return the options of a command and of its own commands."""
    choices = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
    return set(parser.options()).union(*(options(each) for commands in choices for each in commands.values()))


def test_options_of_the_documentation() -> None:
    known = {name for parser in parsers().values() for name in options(parser)}
    ours = re.sub(r".*(?:/bin/spark-class|\bpip) .*", "", TEXT)
    assert {name for name in re.findall(r"(?<![\w-])--[a-z][a-z-]+", ours)} <= known
    conf_of(re.findall(r"--conf (spark\.[\w.]+=[^\s`]+)", TEXT.replace("=N", "=1")))


@pytest.mark.slow
def test_service_is_as_the_page_says() -> None:
    service = UNIT["Service"]
    assert {int(code) for code in service["RestartPreventExitStatus"].split()} == {USAGE, TOPOLOGY}
    assert service["UMask"] == "0077" and service["KillMode"] == "mixed"
    assert f"export {service['Environment']}\n" in TEXT
    if analyze := shutil.which("systemd-analyze"):
        unit = re.sub("/opt/wallaroo/bin/wallaroo", sys.executable, re.sub("User=.*", "User=root", UNIT_TEXT))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "word-count.service")
            file.write_text(unit, encoding="utf-8")
            done = subprocess.run([analyze, "verify", file], capture_output=True, text=True, timeout=120, check=False)
        assert "word-count" not in done.stderr


def test_alarms_use_metrics_that_exist() -> None:
    (rules,) = re.findall(r"^```yaml\n(groups:.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    (group,) = yaml.safe_load(rules)["groups"]
    listed = set(re.findall(r"`(wallaroo_\w+)`", (DOCS / "monitor.md").read_text(encoding="utf-8")))
    used = {name for rule in group["rules"] for name in re.findall(r"\bwallaroo_\w+", rule["expr"])}
    assert used and used <= listed
    scraped = set(re.findall(r"job_name: (\S+)", TEXT))
    assert {job for rule in group["rules"] for job in re.findall(r'job="(.*?)"', rule["expr"])} <= scraped


def test_codes_of_the_documentation_exist() -> None:
    catalogue = (DOCS.parent / "topology-schema" / "errors.json").read_text(encoding="utf-8")
    assert all(f'"{code}"' in catalogue for code in re.findall(r"\b[TPWCR]\d{3}\b", TEXT))


def test_manifest_submits_what_submit_takes() -> None:
    found = manifests()
    assert set(found) == {"ServiceAccount", "RoleBinding", "PersistentVolumeClaim", "Service", "Deployment"}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    (driver,) = pod["containers"]
    assert driver["command"] == ["wallaroo", "submit"]
    parts = submit.split_arguments(driver["args"])
    assert parts.own[0] == "/checkpoint/app.tar.gz"
    assert [token.partition("=")[0] for token in parts.app] == ["--in", "--out"]
    options = dict(
        token.removeprefix("--").partition("=")[::2] for token in driver["args"][1:] if "--conf" not in token
    )
    conf = conf_of([token.removeprefix("--conf=") for token in driver["args"] if token.startswith("--conf=")])
    (source,) = parse_addresses(options["in"], "source")

    # Senders and executors reach the driver through the service, at the ports that the driver gets.
    ports = {port["port"] for port in found["Service"]["spec"]["ports"]}
    assert ports == {port["containerPort"] for port in driver["ports"]}
    (monitor,) = parse_addresses(options["monitor"], "monitor")
    own = {int(conf["spark.driver.port"]), int(conf["spark.driver.blockManager.port"])}
    assert ports == {source.port, monitor.port, *own}
    assert conf["spark.driver.host"] == found["Service"]["metadata"]["name"]
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == found["Deployment"]["spec"]["selector"]["matchLabels"] == labels

    # One driver, and one checkpoint that all see at one path.
    assert found["Deployment"]["spec"]["replicas"] == 1
    assert found["Deployment"]["spec"]["strategy"]["type"] == "Recreate"
    volume = next(each for each in pod["volumes"] if each["name"] == "checkpoint")
    mount = next(each for each in driver["volumeMounts"] if each["name"] == "checkpoint")
    claim = volume["persistentVolumeClaim"]["claimName"]
    assert claim == found["PersistentVolumeClaim"]["metadata"]["name"]
    assert found["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteMany"]
    prefix = "spark.kubernetes.executor.volumes.persistentVolumeClaim.checkpoint."
    assert conf[prefix + "options.claimName"] == claim
    assert conf[prefix + "mount.path"] == mount["mountPath"]
    assert options["checkpoint"].startswith(mount["mountPath"] + "/")
    assert conf["spark.kubernetes.container.image"] == driver["image"]
    assert found["RoleBinding"]["subjects"][0]["name"] == pod["serviceAccountName"]


@pytest.mark.slow
def test_manifest_watches_the_driver_by_its_monitor(tmp_path: Path) -> None:
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    (driver,), (token,) = pod["containers"], pod["initContainers"]
    (address,) = [each.partition("=")[2] for each in driver["args"] if each.startswith("--monitor=")]
    for probe in ("startupProbe", "livenessProbe"):
        assert driver[probe]["httpGet"] == {"path": "/healthz", "port": int(address.rpartition(":")[2])}
    assert manifests()["Service"]["spec"]["publishNotReadyAddresses"]
    # Kubernetes gives the file of a secret to the group; the copy is only the user's.
    mounts = {each["name"]: each["mountPath"] for each in token["volumeMounts"]}
    assert {"name": "token", "mountPath": mounts["token"]} in driver["volumeMounts"]
    places = {name: tmp_path / name for name in mounts}
    for place in places.values():
        place.mkdir()
    secret = places["secret"] / "monitor-token"
    secret.write_text("0123456789abcdef\n")
    secret.chmod(0o440)
    *shell, script = token["command"]
    for name, path in mounts.items():
        script = script.replace(path, str(places[name]))
    subprocess.run([*shell, script], check=True, timeout=300)
    (file,) = re.findall(r"spark\.wallaroo\.monitor\.tokenFile=(\S+)", " ".join(driver["args"]))
    assert read_token(Path(str(places["token"]) + file.removeprefix(mounts["token"]))) == "0123456789abcdef"


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    """Give a Java virtual machine with Spark's jars, which bring Kubernetes' own classes of its objects."""
    gateway = launch_gateway()
    yield gateway.jvm
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=300)


def unknown_fields(found: Any, document: Any, path: str) -> Iterator[str]:
    """Yield the fields of a document that Kubernetes' class of it does not have."""
    if isinstance(document, list):
        for number, entry in enumerate(document):
            yield from unknown_fields(found[number], entry, f"{path}/{number}")
    elif isinstance(document, dict) and not isinstance(found, JavaMap):
        unknown = set(found.getAdditionalProperties())
        yield from (f"{path}/{name}" for name in unknown)
        for name, value in document.items():
            if isinstance(value, dict | list) and name not in unknown:
                part = getattr(found, f"get{name[0].upper()}{name[1:]}")()
                yield from unknown_fields(part, value, f"{path}/{name}")


@pytest.mark.jvm
@pytest.mark.long
def test_fields_of_the_manifest_are_those_of_kubernetes(java: Any) -> None:
    classes = java.io.fabric8.kubernetes.client.utils.KubernetesSerialization()

    def unknown(document: Any) -> list[str]:
        return list(unknown_fields(classes.unmarshal(yaml.safe_dump(document)), document, document["kind"]))

    found = manifests()
    assert [name for document in found.values() for name in unknown(document)] == []
    container = found["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    container["volumeMount"] = container.pop("volumeMounts")
    assert unknown(found["Deployment"]) == ["Deployment/spec/template/spec/containers/0/volumeMount"]


@pytest.mark.jvm
@pytest.mark.long
def test_settings_are_those_of_spark(java: Any) -> None:
    """A setting that Spark does not know is no error to it."""
    for name in (
        "internal.config.package$",
        "deploy.k8s.Config$",
        "deploy.yarn.config.package$",
        "sql.internal.SQLConf$",
    ):
        java.java.lang.Class.forName(f"org.apache.spark.{name}")
    for name in ("Python$", "UI$", "Network$", "Streaming$", "Worker$"):
        java.java.lang.Class.forName(f"org.apache.spark.internal.config.{name}")
    manifest = (DOCS / "kubernetes" / "driver.yaml").read_text(encoding="utf-8")
    told = set(re.findall(r"\b(spark\.[a-z][\w.]*\w)(?==)", TEXT + manifest))
    assert {name for name in told if name.startswith(OWN)} <= RUN_SETTINGS.keys()
    ours = {*SETTINGS, *LOCAL_SETTINGS, *YARN_SETTINGS, *REMOTE_FILES, *memory_settings("yarn", 0)}
    find = java.org.apache.spark.internal.config.ConfigEntry.findEntry
    assert find("spark.executor.memoryOverheads") is None
    assert [name for name in sorted(told | ours) if not name.startswith((*FREE, OWN)) and find(name) is None] == []


def test_image_has_what_the_manifest_names() -> None:
    text = (DOCS / "kubernetes" / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    words = [line.split()[0] for line in lines if line and not line.startswith("#")]
    assert words == ["ARG", "FROM", "ARG", "USER", "ENV", "ARG", "ADD", "COPY", "RUN", "WORKDIR", "USER"]
    assert "XDG_STATE_HOME=/tmp" in text  # the user of Spark's image has no home
    (python,) = re.findall(r"PYSPARK_PYTHON=(\S+)", text)
    assert f"spark.pyspark.python={python}" in (DOCS / "kubernetes" / "driver.yaml").read_text(encoding="utf-8")
    runtime = (DOCS.parent / "runtime" / "pyproject.toml").read_text(encoding="utf-8")
    (low, high) = re.findall(r'"pyspark>=([\d.]+),<([\d.]+)"', runtime)[0]
    (version,) = re.findall(r"ARG SPARK_VERSION=([\d.]+)", text)
    (extras,) = re.findall(r'"wallaroo-spark-runtime\[([a-z,]+)\]" "pyspark==\$\{SPARK_VERSION\}"', text)
    assert extras in tomllib.loads(runtime)["project"]["optional-dependencies"]
    jars = [line.split()[0] for line in text.replace("${SPARK_VERSION}", version).splitlines() if "${MAVEN}/" in line]
    known = [coordinate.split(":") for coordinate in coordinates(version)]
    assert jars == [
        f"${{MAVEN}}/{group.replace('.', '/')}/{name}/{number}/{name}-{number}.jar" for group, name, number in known
    ]
    (cache,) = re.findall(r"XDG_CACHE_HOME=(\S+)", text)
    assert f"    {cache}/wallaroo/jars/\n" in text and f"chown -R spark {cache}\n" in text
    assert tuple(map(int, low.split("."))) <= tuple(map(int, version.split("."))) < tuple(map(int, high.split(".")))
