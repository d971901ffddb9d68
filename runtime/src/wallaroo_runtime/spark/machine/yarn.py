"""Finds settings and addresses of a YARN cluster that are needed before Spark connects to it."""

import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path

from wallaroo_runtime.errors import RunError

VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
FILE = "yarn-site.xml"
PORT = 8032
MANAGER = "yarn.resourcemanager."
MAX_NESTING = 20


def driver_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return additional settings for a driver on YARN.

    The driver uses the Python at the same path as on this machine, unless the environment names another one. It writes
    to the directory of its container, since YARN gives containers no home directory that they may write to.
    """
    python = {} if "PYSPARK_PYTHON" in environment else {"spark.pyspark.python": sys.executable}
    return {**python, "spark.yarn.appMasterEnv.XDG_STATE_HOME": "{{PWD}}"}


def resource_managers(environment: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return the addresses at which YARN's resource managers take applications. One address that answers is enough.

    An address that only Hadoop itself can read, e.g. because the file includes others, is left out.

    Args:
        environment: The environment of this process, which names the directories of the configuration.

    Raises:
        RunError: R659 if the configuration is missing or cannot be used.
    """
    folders = [Path(environment[name]) for name in VARIABLES if environment.get(name)]
    if not folders:
        reason = f"neither {' nor '.join(VARIABLES)} is set"
        raise _unusable(reason)
    file = next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)
    if file is None:
        reason = f"there is no {FILE} in {' nor in '.join(map(str, folders))}"
        raise _unusable(reason)
    try:
        properties = {
            entry.findtext("name", ""): entry.findtext("value", "") for entry in ET.parse(file).iter("property")
        }
    except (OSError, ET.ParseError) as error:
        reason = f"{file}: {error}"
        raise _unusable(reason) from error
    names = [name.strip() for name in properties.get(f"{MANAGER}ha.rm-ids", "").split(",") if name.strip()]
    suffixes = [f".{name}" for name in names] if properties.get(f"{MANAGER}ha.enabled") == "true" else [""]
    return [address for suffix in suffixes for address in _address(properties, suffix)]


def _address(properties: Mapping[str, str], suffix: str) -> Iterator[tuple[str, int]]:
    text = properties.get(f"{MANAGER}address{suffix}") or properties.get(f"{MANAGER}hostname{suffix}", "")
    for _ in range(MAX_NESTING):
        text = re.sub(r"\$\{([^}]+)\}", lambda match: properties.get(match[1], match[0]), text)
    if address := re.fullmatch(r"([\w.-]+)(?::(\d+))?", text.strip()):
        yield address[1], int(address[2] or PORT)


def _unusable(reason: str) -> RunError:
    fix = f"let {' or '.join(VARIABLES)} name the directory of the cluster's configuration"
    return RunError.of("R659", master="yarn", reason=reason, fix=fix)
