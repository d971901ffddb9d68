"""Makes the workspace of a Go build from the program's module, the modules of the user's workspace, and the SDK."""

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from wallaroo_runtime.program.go import run_go
from wallaroo_runtime.program.gopath import packages_by_place
from wallaroo_runtime.program.import_path import MODULE, go_files, is_sdk, nested_in
from wallaroo_runtime.program.sdk import sdk_directory

# Module of a program without a go.mod; the directory's name does not matter. Nothing is fetched from this domain.
NEW_PATH = "wallaroo.local/program"
NEW_MODULE = f"module {NEW_PATH}\n\ngo 1.24.0\n"
_REQUIRED = re.compile(r"^(?:require)?\s+(\S+) v\d", re.MULTILINE)
_MODULE_LINE = re.compile(r'^module\s+"?([^\s"]+)', re.MULTILINE)


def find_module(directory: Path) -> Path | None:
    """Return the nearest directory with a go.mod: `directory`, or a directory above it."""
    return next((parent for parent in (directory, *directory.parents) if (parent / "go.mod").is_file()), None)


def find_workspace(go: str, module: Path) -> Path | None:
    """Return the user's go.work that names a module: the file in GOWORK, else the nearest go.work above the module.

    A go.work that does not name the module does not count, because go commands refuse to work there.
    """
    named = os.environ.get("GOWORK", "")
    if named == "off":
        return None
    files = [Path(named)] if named else [parent / "go.work" for parent in (module, *module.parents)]
    workspace = next((file for file in files if file.is_file()), None)
    return workspace if workspace and module in used(workspace, read_workspace(go, workspace)) else None


def read_workspace(go: str, file: Path) -> dict[str, Any]:
    """Return a go.work as `go work edit -json` prints it.

    Raises:
        RunError: W407 if the file cannot be parsed.
    """
    printed = run_go([go, "work", "edit", "-json", str(file)], file.parent, go_environment())
    content: dict[str, Any] = json.loads(printed)
    return content


def used(file: Path, content: Mapping[str, Any]) -> list[Path]:
    """Return the absolute paths of the directories that a go.work names."""
    return [(file.parent / entry["DiskPath"]).resolve() for entry in content.get("Use") or ()]


def sdk_modules(*modules: Path) -> list[Path]:
    """Return the directories of those modules of the installed SDK that a program's modules import."""
    files = chain.from_iterable(map(go_files, modules))
    return [sdk_directory(), *(sdk_directory() / name for name in sorted(nested_in(files)))]


def _sdk_required() -> set[str]:
    """Return the import paths of the modules that the SDK requires."""
    return set(_REQUIRED.findall((sdk_directory() / "go.mod").read_text(encoding="utf-8")))


def module_path(directory: Path) -> str:
    """Return the import path of the module in a directory; empty if the directory has no go.mod."""
    try:
        match = _MODULE_LINE.search((directory / "go.mod").read_text(encoding="utf-8"))
    except OSError:
        return ""
    return match[1] if match else ""


def write_workspace(go: str, version: str, program: Path, work: Path, replace: dict[str, str]) -> None:
    """Write the workspace of a build into `work`: the program's module, the user's workspace, and the SDK.

    Args:
        version: Version of the go command, e.g. `go1.26.1`.
        program: The directory of the main package.
        work: Directory of the new go.work.
        replace: Files that the compiler reads instead of other files. A go.mod that cannot be used as it is gets an
            entry.
    """
    module = find_module(program) or program
    workspace = find_workspace(go, module)
    modules, named, replaced = [module], [], []
    if workspace:
        content = read_workspace(go, workspace)
        named = [path for path in used(workspace, content) if (path / "go.mod").is_file()]
        modules = [path for path in named if not is_sdk(module_path(path))]
        replaced = [
            _replace_line(entry, workspace) for entry in content.get("Replace") or () if not _is_gone(entry, workspace)
        ]
    standard = Path(run_go([go, "env", "GOROOT"], work, go_environment()).strip()) / "src"
    paths = {module_path(path) or NEW_PATH: path for path in modules}
    placed = packages_by_place(
        program,
        {path: folder for path, folder in paths.items() if not (standard / path).is_dir()},
        standard,
        {MODULE, *_sdk_required()},
        has_module=(module / "go.mod").is_file(),
    )
    if not (module / "go.mod").is_file():
        _write_module(_new_path(program, placed), module, work, replace)
    modules += _placed_modules(placed, standard, work, replace)
    for path in modules:
        _mend(go, path / "go.mod", standard, work, replace)
    sdk = sdk_modules(*modules)
    for path in set(named) - {*modules, *sdk}:
        renew = "another SDK than is built with; `wallaroo build --init` renews it"
        print(f"note: {workspace} names {path}, {renew}", file=sys.stderr)
    number = re.search(r"\d+(\.\d+)+", version)
    uses = "\n\t".join(_quoted(str(path)) for path in dict.fromkeys([*modules, *sdk]))
    lines = [f"go {number[0] if number else '1.24.0'}", f"use (\n\t{uses}\n)", *replaced]
    (work / "go.work").write_text("\n\n".join(lines) + "\n", encoding="utf-8")


def go_environment(workspace: str = "off") -> dict[str, str]:
    """Return the environment of go commands, without the user's settings for modules. Go fetches no toolchain."""
    return {**os.environ, "GOWORK": workspace, "GOFLAGS": "", "GO111MODULE": "on", "GOTOOLCHAIN": "local"}


def _write_module(path: str, directory: Path, work: Path, replace: dict[str, str]) -> None:
    """Write a go.mod into `work`. The compiler reads it in the place of a go.mod in `directory`."""
    mod_file = work / f"{len(replace)}.mod"
    mod_file.write_text(NEW_MODULE.replace(NEW_PATH, path), encoding="utf-8")
    replace[str(directory / "go.mod")] = str(mod_file)


def _new_path(program: Path, placed: Mapping[str, Path]) -> str:
    """Choose a module path for a program without a go.mod. With it, Go permits imports of its `internal` packages.

    Go permits such imports only to packages below the parent of the folder `internal`.
    """
    for path, folder in placed.items():
        root = folder.parents[path.count("/")]
        if "internal" in path.split("/") and root in program.parents:
            return f"{program.relative_to(root).as_posix()}/{NEW_PATH}"
    return NEW_PATH


def _placed_modules(placed: Mapping[str, Path], standard: Path, work: Path, replace: dict[str, str]) -> list[Path]:
    """Return the modules of packages that `packages_by_place` has found. A package without a module gets a new one."""
    modules = []
    for path, folder in placed.items():
        root = find_module(folder)
        name = module_path(root) if root else ""
        if root is None or (standard / name).is_dir() or path != "/".join([name, *folder.relative_to(root).parts]):
            root = folder
            _write_module(path, root, work, replace)
        modules.append(root)
    return modules


def _mend(go: str, file: Path, standard: Path, work: Path, replace: dict[str, str]) -> None:
    """Replace a go.mod that go cannot use by a corrected copy.

    Such a go.mod replaces modules by directories of another machine, names the SDK, has its requirements in a vendor
    folder, or has the name of a package of the standard library.
    """
    text = file.read_text(encoding="utf-8") if str(file) not in replace else ""
    is_vendored = (file.parent / "vendor" / "modules.txt").is_file()
    is_standard = bool(text) and (standard / module_path(file.parent)).is_dir()
    if not text or not (is_vendored or is_standard or any(word in text for word in ("replace", MODULE))):
        return
    content = json.loads(run_go([go, "mod", "edit", "-json", str(file)], file.parent, go_environment()))
    gone = [entry["Old"] for entry in content["Replace"] or () if _is_gone(entry, file)]
    edits = [f"-dropreplace={_name(old)}" for old in gone]
    # A workspace has the SDK, but go would still look for the modules that a go.mod requires.
    required = [entry["Path"] for entry in content["Require"] or ()]
    edits += [
        f"-droprequire={path}" for path in required if is_sdk(path) or (is_vendored and path not in _sdk_required())
    ]
    if is_standard:
        edits.append(f"-module={module_path(file.parent)}/{NEW_PATH}")
    if edits:
        copy = work / f"{len(replace)}.mod"
        shutil.copyfile(file, copy)
        run_go([go, "mod", "edit", *edits, str(copy)], work, go_environment())
        replace[str(file)] = str(copy)


def _is_gone(entry: Mapping[str, Any], file: Path) -> bool:
    """Return whether a build ignores a `replace` line of a go.mod: it is for the SDK, or names a missing directory."""
    if is_sdk(entry["Old"]["Path"]):
        return True
    path = Path(entry["New"]["Path"])
    if not path.is_absolute() or (path / "go.mod").is_file():
        return False
    print(
        f"note: {file} replaces {_name(entry['Old'])} by {path}, which is not there; it is not replaced",
        file=sys.stderr,
    )
    return True


def _replace_line(entry: Mapping[str, Any], file: Path) -> str:
    new = dict(entry["New"])
    if not new.get("Version"):
        new["Path"] = str((file.parent / new["Path"]).resolve())
    old_new = [_quoted(each["Path"]) + f" {each.get('Version', '')}".rstrip() for each in (entry["Old"], new)]
    return f"replace {' => '.join(old_new)}"


def _name(module: Mapping[str, str]) -> str:
    return module["Path"] + (f"@{module['Version']}" if module.get("Version") else "")


def _quoted(text: str) -> str:
    # Go's strings have no surrogates, which JSON would write for characters that are not ASCII.
    return json.dumps(text, ensure_ascii=False)
