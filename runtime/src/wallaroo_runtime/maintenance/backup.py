"""Copies a whole checkpoint that no process uses, checks the copy file by file, and restores it as a whole.

Spark's records contain absolute paths of files, so a restore rewrites these records for the new directory.
"""

import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.archive.archive import file_digest
from wallaroo_runtime.checkpoint.directory import WORKERS
from wallaroo_runtime.checkpoint.integrity import check_journal, damaged
from wallaroo_runtime.checkpoint.lock import LOCK, HeldDirectory
from wallaroo_runtime.checkpoint.manifest import Manifest, read_manifest
from wallaroo_runtime.durable.file import (
    NO_ROOM,
    disk_failure,
    noted,
    path_failure,
    refuse_links,
    replace_file,
    sync_directory,
)
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.service.driver import DRIVER_FILE
from wallaroo_runtime.storage.outbox.log import Published, read_base
from wallaroo_runtime.system.process import alive

LIST, FILES = "backup.json", "files"
VERSION = 1
LEFT_OUT = (LOCK, WORKERS, "logs", DRIVER_FILE)  # files that each run makes again, so a copy does not need them
SERVERS = ("gateway.json", "egress.json")


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a backup or a restore.

    Attributes:
        checkpoint: The directory of the checkpoint.
        backup: The directory of the copy.
        files: Number of copied files.
        bytes: Number of copied bytes.
    """

    checkpoint: Path
    backup: Path
    files: int
    bytes: int


def back_up(checkpoint: Path, backup: Path) -> Copied:
    """Copy a checkpoint that no process uses. The copy is complete, or does not exist.

    Raises:
        RunError: R610 if a driver uses the checkpoint, R616 if there is none or it cannot be copied, R698 or R711 if
            its files are damaged or links.
    """
    read_manifest(checkpoint)  # refuse another directory before it gets a lock
    if backup.resolve().is_relative_to(checkpoint.resolve()):
        raise _refused(checkpoint, f"{backup} is within it", "give a directory outside of it")
    held = HeldDirectory.take(checkpoint)
    try:
        held.check_links()
        manifest = read_manifest(checkpoint)
        if remote := sorted(manifest.services):
            names = " and ".join(name.replace("gateway", "the gateway") for name in remote)
            reason = f"part of it lies at remote services ({names})"
            raise _refused(checkpoint, reason, "copy their directories with it")
        _check_whole(checkpoint, manifest)
        _check_servers(checkpoint)
        listed: dict[str, dict[str, Any]] = {}
        with _made(backup, checkpoint) as copy:
            for name in _names(checkpoint):
                listed[name] = _copy(checkpoint / name, copy / FILES / name)
            content = {
                "version": VERSION,
                "application": manifest.name,
                "checkpoint": str(checkpoint),
                "spark": manifest.spark,
                "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "files": listed,
            }
            replace_file(copy / LIST, (json.dumps(content, indent=1) + "\n").encode())
    except OSError as error:
        raise _failed(checkpoint, backup, error) from error
    finally:
        held.release()
    return _counted(checkpoint, backup, listed)


def _check_whole(checkpoint: Path, manifest: Manifest) -> None:
    """Refuse to copy a checkpoint with which no run can continue, because the copy might replace a good one.

    Raises:
        RunError: R698 if the journal is missing, or Spark lacks micro-batches that the outbox has.
    """
    if manifest.journal:
        check_journal(checkpoint / "journal", manifest.journal, [])
    published = Published.of(read_base(checkpoint / "outbox")).batch
    if published > 0 and not any((checkpoint / manifest.spark / "offsets").glob("[0-9]*")):
        expected = f"micro-batch {published}, which the outbox has"
        raise damaged(checkpoint, manifest.spark, expected, "no micro-batch")


def restore(backup: Path, checkpoint: Path | None = None) -> Copied:
    """Restore a copy as a checkpoint, whose directory must not exist.

    Args:
        backup: The directory that `back_up` made.
        checkpoint: The directory to create; None for the checkpoint's original path.

    Raises:
        RunError: R698 if the backup was changed or damaged; R616 if there is no backup, or the target exists.
    """
    # Late: pyspark takes a second to import.
    from wallaroo_runtime.spark.state_store.rescale import relocate

    content = _read_list(backup)
    refuse_links(backup)
    target = (checkpoint or Path(content["checkpoint"])).absolute()
    listed: Mapping[str, Mapping[str, Any]] = content["files"]
    names = set(_all_names(backup / FILES))
    if names != set(listed):
        name = min(names ^ set(listed))
        raise _damaged(backup, f"{name} is {'not in its list' if name in names else 'missing'}")
    try:
        with _made(target, backup) as copy:
            _copy_all(backup, copy, listed)
            spark = str(content["spark"])
            relocate(copy / spark, f"file:{target / spark}")
    except OSError as error:
        raise _failed(backup, target, error) from error
    return _counted(target, backup, listed)


def _copy_all(backup: Path, target: Path, listed: Mapping[str, Mapping[str, Any]]) -> None:
    for name, wanted in listed.items():
        if _copy(backup / FILES / name, target / name) != wanted:
            raise _damaged(backup, f"{name} is not what was written")


def _counted(checkpoint: Path, backup: Path, listed: Mapping[str, Mapping[str, Any]]) -> Copied:
    return Copied(checkpoint, backup, len(listed), sum(each["bytes"] for each in listed.values()))


def _read_list(backup: Path) -> dict[str, Any]:
    path = backup / LIST
    try:
        content = json.loads(path.read_bytes())
        if content["version"] != VERSION:
            raise _damaged(backup, f"its version is {content['version']}; this release reads {VERSION}")
        names = [*content["files"].keys(), content["spark"]]
        if not os.path.isabs(content["checkpoint"]) or any(
            os.path.isabs(name) or ".." in Path(name).parts for name in names
        ):
            raise _damaged(backup, "its list has a name outside of it")
        return {name: content[name] for name in ("checkpoint", "spark", "files")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, FileNotFoundError):
            raise _refused(backup, "there is no backup at this path", "give the directory of one") from error
        if isinstance(error, OSError) and (failure := path_failure(error, "read")):
            raise failure from error
        raise _damaged(backup, f"{path}: {error}") from error


def _check_servers(checkpoint: Path) -> None:
    """Refuse a checkpoint whose gateway or egress is still running. These end within seconds after their driver."""
    for name in SERVERS:
        if (process := alive(noted(checkpoint / name))) is not None:
            what = f"its {name.partition('.')[0]}, process {process.pid}, still runs"
            raise _refused(checkpoint, what, "wait until it ends, or stop it")


def _names(checkpoint: Path) -> Iterator[str]:
    """Yield the names of the files that a copy of a checkpoint needs, as paths within the checkpoint."""
    for entry in sorted(checkpoint.iterdir()):
        if entry.name in LEFT_OUT:
            continue
        if entry.is_dir():
            yield from (f"{entry.name}/{name}" for name in _all_names(entry))
        elif stat.S_ISREG(entry.lstat().st_mode):
            yield entry.name


def _all_names(directory: Path) -> Iterator[str]:
    """Yield the names of the regular files below a directory. Sockets are left out: they belong to processes."""
    for folder, names, files in os.walk(directory):
        names.sort()
        for name in sorted(files):
            path = Path(folder, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path.relative_to(directory).as_posix()


def _copy(source: Path, target: Path) -> dict[str, Any]:
    """Copy a file, and return the size and hash of the copy."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest = file_digest(source)
    shutil.copy2(source, target)
    return {"bytes": target.stat().st_size, "sha256": digest}


@contextmanager
def _made(target: Path, source: Path) -> Iterator[Path]:
    """Yield a directory for the block to fill. Afterwards rename it to `target`, or remove it if the block failed."""
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        raise _refused(source, f"{target} is there already", "give another directory, or move that one away")
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = target.with_name(f".{target.name}.new")
    folder.mkdir(mode=0o700, exist_ok=True)
    held = HeldDirectory.take(folder)
    try:
        held.clear()  # a command that was killed may have left a part
        yield folder
        os.sync()  # one call syncs all files
        if target.exists():
            target.rmdir()
        folder.rename(target)
        (target / LOCK).unlink()
        sync_directory(target.parent)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        held.release()


def _refused(path: Path, reason: str, fix: str) -> RunError:
    finding = Diagnostic.of("R616", path=path, done="copied", reason=reason)
    return RunError([replace(finding, fix=fix)], USAGE)


def _failed(path: Path, target: Path, error: OSError) -> RunError:
    # The error of a full disk names the file that is read.
    place = target if error.errno in NO_ROOM else error.filename
    return disk_failure(error, place) or _refused(path, f"{place}: {error.strerror}", "correct that, and repeat it")


def _damaged(backup: Path, reason: str) -> RunError:
    return RunError.of("R698", what=f"backup {backup}", reason=reason)
