"""Placeholders in the topology of an archive. Each start of a worker reads this file, so it imports little."""

import platform

SITE = "site"
ARCHIVE_PLACEHOLDER, PLATFORM_PLACEHOLDER = "{archive}", "{platform}"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def this_platform() -> str:
    """Return the name by which archives call the platform of this machine, e.g. `linux-amd64`."""
    machine = platform.machine()
    return f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"
