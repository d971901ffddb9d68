"""Fetches the wheels that a Python application needs, and writes a lock file with their hashes."""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from wallaroo.emit.module import module_command
from wallaroo_runtime.archive.archive import ANY_PLATFORM, file_digest
from wallaroo_runtime.errors import RunError

SDK = "wallaroo-spark"
PIP_SECONDS = 600
MACHINES = {"linux-amd64": "x86_64", "linux-arm64": "aarch64"}
GLIBC_MINORS = range(5, 35)  # minor versions of glibc: manylinux_2_5 to manylinux_2_34
PURE = "-none-any.whl"
SHOWN_LINES = 5


def python_version() -> str:
    """Return the version of Python for which wheels are fetched: this interpreter's, e.g. `3.11`."""
    return "{}.{}".format(*sys.version_info[:2])


def fetch_wheels(requirements: Path, platforms: Sequence[str], folder: Path) -> dict[str, Path]:
    """Fetch the wheels of a requirements file, and of the Python SDK's worker, for each platform.

    Args:
        requirements: Requirements file of pip; if it has hashes, pip compares them.
        platforms: Platforms, as archives name them.
        folder: Empty folder, in which the wheels are kept.

    Returns:
        Files of the wheels and of `requirements.lock`, by their names in the archive.

    Raises:
        RunError: R658 with the error of pip.
    """
    wheels: dict[str, Path] = {}
    for platform in platforms:
        place = folder / platform
        _download(requirements, ["-r", str(requirements.absolute())], platform, place)
        known = folder / f"{platform}.txt"
        known.write_text("".join(f"{_requirement(wheel)}\n" for wheel in place.glob("*.whl")), encoding="utf-8")
        _download(requirements, [*worker_requirements(), "-c", str(known)], platform, place)
        for wheel in place.glob("*.whl"):
            kind = ANY_PLATFORM if wheel.name.endswith(PURE) else platform
            wheels[f"wheels/{kind}/{wheel.name}"] = wheel
    lock = folder / "requirements.lock"
    lock.write_text(lock_text(list(wheels.values())), encoding="utf-8")
    return {**wheels, lock.name: lock}


def worker_requirements() -> list[str]:
    """Return the requirements of the SDK's extra `worker`, from the metadata of its distribution."""
    requirements = metadata.requires(SDK) or []
    return [text.partition(";")[0].strip() for text in requirements if re.search(r"extra == .worker.", text)]


def lock_text(wheels: Sequence[Path]) -> str:
    """Return the text of a lock file for wheels: a line for each version, with the hashes of its wheels."""
    hashes = defaultdict(set)
    for wheel in wheels:
        hashes[_requirement(wheel)].add(file_digest(wheel))
    lines = [
        f"{name} {' '.join(f'--hash=sha256:{each}' for each in sorted(digests))}" for name, digests in hashes.items()
    ]
    return "".join(f"{line}\n" for line in sorted(lines))


def _requirement(wheel: Path) -> str:
    name, version, *_ = wheel.name.split("-")
    return f"{name.lower().replace('_', '-')}=={version}"


def _download(requirements: Path, wanted: list[str], platform: str, target: Path) -> None:
    machine = MACHINES[platform]
    tags = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC_MINORS] + [f"manylinux2014_{machine}"]
    command = module_command(
        sys.executable, "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:",
        "--implementation", "cp", "--python-version", python_version(), "--dest", str(target),
        *(f"--platform={tag}" for tag in tags), *wanted,
    )  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_SECONDS, check=False)
        error_text = "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
    except (OSError, subprocess.TimeoutExpired) as error:
        error_text = str(error)
    if error_text:
        first = error_text.splitlines()[0].removeprefix("ERROR: ")
        reason = f"its dependencies for {platform} cannot be fetched: {first}"
        fix = f"correct {requirements}, or pack for fewer processors with --arch"
        traceback = "\n".join(error_text.splitlines()[:SHOWN_LINES])
        raise RunError.of("R658", path=requirements, reason=reason, fix=fix, traceback=traceback)
