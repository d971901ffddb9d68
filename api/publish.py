"""Writes the Go SDK as the modules that are published, into build/go-module: `make go-module`.

`repository/` is what is pushed: the SDK under the path `PUBLISHED`, with its nested modules. `proxy/` is
the same as files for GOPROXY. The path is written in `runtime/src/wallaroo_runtime/program/import_path.py` alone.
"""

import argparse
import json
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

from wallaroo.topology import SDK_VERSION
from wallaroo_runtime.program.import_path import NESTED, PUBLISHED
from wallaroo_runtime.program.published import module_files, write_files

ROOT = Path(__file__).resolve().parents[1]
VERSION = f"v{SDK_VERSION}"
# The tests of what nobody imports, and others that read contracts of this repository.
LEFT_OUT = ("*.test", "*.prof", "internal/*_test.go", "internal/*/testdata/*", "internal/vector/*")
VECTOR = b"/internal/vector"
LONG_AGO = (2000, 1, 1, 0, 0, 0)  # the archive is the same whenever it is written
README = """# Go SDK of Wallaroo on Spark

    go get {path}@{version}

Programs that import `{path}/stream` run with `wallaroo run .`. Programs for Goka import `{path}/goka`, a module of its
own; `{path}/otel` is another one.

This repository is written by `make go-module` of Wallaroo on Spark: changes belong there.
"""


def main() -> int:
    """Write the repository and the proxy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("into", type=Path, nargs="?", default=ROOT / "build" / "go-module")
    publish(parser.parse_args().into, PUBLISHED)
    return 0


def publish(into: Path, path: str) -> None:
    """Write both for a path, in place of what is there."""
    if "." in path.rsplit("/", 1)[-1] or "." not in path.split("/")[0]:
        reason = f"{path}: the first part must be a host, and the last one a name without a dot"
        raise SystemExit(reason)
    files = repository_files(path)
    for name in ("repository", "proxy"):
        shutil.rmtree(into / name, ignore_errors=True)
    write_files(into / "repository", files)
    # The order of imports depends on the path.
    subprocess.run(["gofmt", "-w", str(into / "repository")], check=True)
    files = {name: (into / "repository" / name).read_bytes() for name in files}
    write_proxy(into / "proxy", path, {name: data for name, data in files.items() if name.split("/")[0] not in NESTED})
    for nested in NESTED:
        start = f"{nested}/"
        inner = {name.removeprefix(start): data for name, data in files.items() if name.startswith(start)}
        write_proxy(into / "proxy", f"{path}/{nested}", inner | {"LICENSE": files["LICENSE"]})
    modules = (path, *(f"{path}/{nested}" for nested in NESTED))
    print(f"wrote {into}:", ", ".join(f"{module} {VERSION}" for module in modules))


def repository_files(path: str) -> dict[str, bytes]:
    """Return the files of the repository, with the tests that show how the SDK is used."""
    found = module_files(ROOT / "api" / "go", path, LEFT_OUT)
    kept = {name: data for name, data in found.items() if VECTOR not in data}
    for name in (f"{nested}/go.mod" for nested in NESTED):
        kept[name] = kept[name].replace(f"{path} v0.0.0".encode(), f"{path} {VERSION}".encode())
    readme = README.format(path=path, version=VERSION)
    return kept | {"LICENSE": (ROOT / "LICENSE").read_bytes(), "README.md": readme.encode()}


def write_proxy(proxy: Path, path: str, files: Mapping[str, bytes]) -> None:
    """Write a module as a proxy serves it (https://go.dev/ref/mod#goproxy-protocol)."""
    directory = proxy / "".join(f"!{each.lower()}" if each.isupper() else each for each in path) / "@v"
    directory.mkdir(parents=True)
    (directory / "list").write_text(f"{VERSION}\n")
    (directory / f"{VERSION}.info").write_text(json.dumps({"Version": VERSION}))
    (directory / f"{VERSION}.mod").write_bytes(files["go.mod"])
    with zipfile.ZipFile(directory / f"{VERSION}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(f"{path}@{VERSION}/{name}", LONG_AGO), data, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    raise SystemExit(main())
