"""Writes all generated files, the copy of `errors.json` for Go, and the version. With --check it only compares.

Needs grpcio-tools, and protoc-gen-go on PATH (`make generate` installs both).
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PYTHON = "api/python/src/wallaroo/worker/_proto"
GO = "api/go/internal/workerpb"
GO_RECORD = "api/go/internal/recordpb"
SERVICE = "runtime/src/wallaroo_runtime/service/_proto"
GO_ERRORS = "api/go/internal/diagnostic/errors.json"  # Go embeds no link; the Python packages have links
# The Python SDK defines the version. The pattern finds the places where these files repeat it.
VERSION_FILE = ROOT / "api/python/src/wallaroo/emit/topology.py"
VERSIONED = ("runtime/pyproject.toml", "api/connectors/pyproject.toml", "api/go/internal/declaration/document.go")
VERSION = re.compile(r'^(version = "|\s*SDKVersion = "|.*"wallaroo-spark[^"=]*==)[^"]*"', re.MULTILINE)


def protoc(into: Path) -> None:
    for name, python, go in (("worker", PYTHON, GO), ("record", PYTHON, GO_RECORD), ("service", SERVICE, "")):
        plugins = {"python": python, "pyi": python, "go": go}
        outputs = []
        for plugin, folder in plugins.items():
            if folder:
                (into / folder).mkdir(parents=True, exist_ok=True)
                option = "paths=source_relative:" if folder == go else ""
                outputs.append(f"--{plugin}_out={option}{into / folder}")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{HERE}", *outputs, str(HERE / f"{name}.proto")]
        subprocess.run(command, check=True)


def versioned(into: Path) -> None:
    (version,) = re.findall(r'^SDK_VERSION = "(.*)"$', VERSION_FILE.read_text(encoding="utf-8"), re.MULTILINE)
    for name in VERSIONED:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text(encoding="utf-8")
        (into / name).write_text(VERSION.sub(rf'\g<1>{version}"', text), encoding="utf-8")


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        protoc(made)
        versioned(made)
        (made / GO_ERRORS).parent.mkdir(parents=True)
        shutil.copyfile(HERE / "errors.json", made / GO_ERRORS)
        for file in sorted(path for path in made.rglob("*") if path.is_file()):
            relative = file.relative_to(made)
            committed = ROOT / relative
            if committed.exists() and committed.read_bytes() == file.read_bytes():
                continue
            stale.append(relative)
            if not check:
                committed.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, committed)
    for relative in stale:
        print(f"{'stale' if check else 'wrote'}: {relative}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
