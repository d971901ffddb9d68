"""Archives whose author means harm: R655 in bounded time, and nothing is written outside of the target."""

import gzip
import hashlib
import io
import json
import random
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.archive.archive import file_digest, read_archive, unpack
from wallaroo_runtime.archive.wheel import unpack_wheel
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.topology.model import PROTOCOL_VERSION

BOUND_S = 20.0  # each takes milliseconds; this is for a machine that does much else
WHEEL = "x-1-py3-none-any.whl"
HEAD = {"x-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n", "x-1.dist-info/METADATA": "Name: x\n"}
VERSIONS: dict[str, Any] = {
    "archive_version": 1, "runtime_version": "0", "protocol_version": PROTOCOL_VERSION, "platforms": [], "python": "",
}  # fmt: skip
ALLOWED = {"R655"}


def wheel(members: Mapping[str, str | bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a wheel with some members and what each must have."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as out:
        for name, content in {**members, **HEAD, "x-1.dist-info/RECORD": ""}.items():
            out.writestr(name, content)
    return data.getvalue()


def tar(files: Mapping[str, bytes], **changes: Any) -> bytes:
    """Return the tar file of an archive with some files, and a manifest that lists them."""
    data = io.BytesIO()
    members = [
        {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), "is_executable": False}
        for name, content in files.items()
    ]
    manifest = json.dumps({**VERSIONS, "members": members, **changes}).encode()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as out:
        for name, content in {"manifest.json": manifest, **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            out.addfile(entry, io.BytesIO(content))
    return data.getvalue()


@contextmanager
def attempt(data: bytes) -> Iterator[tuple[str, Path, Path]]:
    """Read and unpack an archive; give what was refused (or nothing), its directory and what it is unpacked into."""
    with tempfile.TemporaryDirectory() as folder:
        file, target = Path(folder, "app.tar.gz"), Path(folder, "into", "target")
        file.write_bytes(data)
        target.parent.mkdir()
        began, refused = time.monotonic(), ""
        try:
            read_archive(file)
            unpack(file, file_digest(file), target, sys.executable)
        except RunError as error:
            refused = error.diagnostics[0].code
        assert time.monotonic() - began < BOUND_S
        outside = {path for path in Path(folder).rglob("*") if target not in (path, *path.parents)}
        assert outside == {file, target.parent}, "something was written elsewhere"
        yield refused, Path(folder), target


def test_what_nobody_has_changed_is_unpacked() -> None:
    content = wheel({"x/y.py": "a", "x-1.data/platlib/z.py": "b", "x-1.data/scripts/s": "", "x-1.data/data/etc/d": ""})
    files = {"topology.json": b"{}", f"wheels/any/{WHEEL}": content}
    with attempt(gzip.compress(tar(files))) as (refused, _, target):
        assert refused == ""
        site = target / "site"
        assert {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()} == {
            "x/y.py", "z.py", *HEAD, "x-1.dist-info/RECORD",
        }  # fmt: skip
        assert (site / "x" / "y.py").read_text() == "a"


@pytest.mark.parametrize("prefix", ["x-1.data/purelib/", "x-1.data/platlib/", "", "x/../../"])
def test_wheel_cannot_write_elsewhere(prefix: str, tmp_path: Path) -> None:
    elsewhere, file = tmp_path / "elsewhere", tmp_path / WHEEL
    for name in (f"{prefix}{elsewhere}", f"{prefix}../../elsewhere", f"{prefix}/../../elsewhere"):
        file.write_bytes(wheel({name: "harm"}))
        with pytest.raises(ValueError, match="would lie outside of the directory of modules"):
            unpack_wheel(file, tmp_path / "site", 1000)
        assert sorted(path.name for path in tmp_path.iterdir()) in ([WHEEL], ["site", WHEEL])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no wheel", "File is not a zip file"),
        (wheel({"x": "1" * 1001}), "at most 1000 in 100000 are unpacked"),
        (wheel({"x": "", "x/y": ""}), "Not a directory"),
        (wheel({"x-1.data": ""}), "'x-1.data' is a file; the wheel's data is a directory"),
        (wheel({"a" * 300: ""}), "File name too long"),
        (wheel({}).replace(b"x-1.dist-info", b"y-1.dist-info"), "doesn't match wheel filename"),
        (wheel({}).replace(b"x-1.dist-info/WHEEL", b"x-1.dist-info/OTHER"), "There is no item named"),
    ],
)
def test_odd_wheels_are_told(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / WHEEL
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"{WHEEL} is no wheel that can be installed: .*{said}"):
        unpack_wheel(file, tmp_path / "site", 1000)


def test_small_archive_with_a_huge_topology_is_refused_before_it_is_read() -> None:
    size = 600 << 20
    member = {"name": "topology.json", "bytes": size, "sha256": "0" * 64}
    manifest = json.dumps({**VERSIONS, "members": [member]}).encode()
    data = io.BytesIO()
    with gzip.open(data, "wb", compresslevel=1) as out:
        for name, length in (("manifest.json", len(manifest)), ("topology.json", size)):
            entry = tarfile.TarInfo(name)
            entry.size = length
            out.write(entry.tobuf())
            if name == "manifest.json":
                out.write(manifest.ljust(-(-length // 512) * 512, b"\0"))
        zeros = bytes(1 << 20)
        for _ in range(size >> 20):
            out.write(zeros)
    assert len(data.getvalue()) < 6 << 20
    with attempt(data.getvalue()) as (refused, _, _target):
        assert refused == "R655"


def test_archive_that_becomes_very_much_more_is_refused() -> None:
    data = gzip.compress(tar({"topology.json": b"{}", "zeros": bytes(200 << 20)}), 1)
    with attempt(data) as (refused, _, _target):
        assert refused == "R655"


def header(kind: bytes, content: bytes) -> bytes:
    entry = tarfile.TarInfo("header")
    entry.type, entry.size = kind, len(content)
    return entry.tobuf() + content.ljust(-(-len(content) // 512) * 512, b"\0")


@pytest.mark.parametrize(
    "before",
    [
        header(tarfile.XHDTYPE, b"1" * 60_000),
        header(tarfile.XGLTYPE, b"".join(b"%d k%05d=v\n" % (len("12 k00000=v\n"), number) for number in range(40_000))),
        header(tarfile.SOLARIS_XHDTYPE, b"1" * 60_000),
        header(tarfile.GNUTYPE_LONGNAME, b"y" * 60_000),
        header(tarfile.GNUTYPE_LONGLINK, b"y\0"),
        header(tarfile.GNUTYPE_LONGNAME, b"y\0") * 2_000,
    ],
    ids=["pax digits", "global pax", "solaris", "long name", "long link", "many names"],
)
def test_headers_that_keep_a_reader_busy_are_refused(before: bytes) -> None:
    files = {"topology.json": b"{}", **{f"m{number}": b"" for number in range(1000)}}
    with attempt(gzip.compress(before + tar(files), 6)) as (refused, _, _target):
        assert refused == "R655"


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=120), max_size=4))
@settings(max_examples=15, deadline=None)
def test_names_of_any_length_and_language_are_read(parts: list[str]) -> None:
    name = "/".join(["data", *(part.strip(".") + "x" for part in parts)])
    with attempt(gzip.compress(tar({"topology.json": b"{}", name: b"content"}), 1)) as (refused, _, target):
        assert refused in {"", "R655"}
        assert refused or (target / name).read_bytes() == b"content"


@pytest.mark.parametrize("manifest", ["[" * 100_000, '{"a":' * 100_000, "null", "[]", '"x"', "1" * 10_000])
def test_odd_manifests_are_told(manifest: str) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as out:
        entry = tarfile.TarInfo("manifest.json")
        entry.size = len(manifest)
        out.addfile(entry, io.BytesIO(manifest.encode()))
    with attempt(data.getvalue()) as (refused, _, _target):
        assert refused in {"R655"}


ODD = st.sampled_from(
    ["x", "..", ".", "", "/", "x-1.data", "purelib", "site", "a\\b", "é", "\u0001", "a" * 300, "x.whl"]
)
NAMES = st.lists(ODD, min_size=1, max_size=5).map("/".join).filter(bool)  # zipfile writes no empty ones
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda each: st.lists(each, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None)
@given(NAMES, NAMES, st.binary(max_size=20))
def test_odd_names_end_with_a_code(of_member: str, of_wheel: str, content: bytes) -> None:
    files = {"topology.json": b"{}", f"wheels/any/{WHEEL}": wheel({of_wheel: content}), of_member: content}
    with attempt(gzip.compress(tar(files), 1)) as (refused, _, target):
        assert refused in {"", *ALLOWED}
        assert target.exists() == (not refused)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.sampled_from([*VERSIONS, "members"]), VALUES)
def test_odd_values_in_the_manifest_end_with_a_code(name: str, value: Any) -> None:
    with attempt(gzip.compress(tar({"topology.json": b"{}"}, **{name: value}), 1)) as (refused, _, _target):
        assert refused in {"", *ALLOWED}


@settings(max_examples=75, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(["gzip", "tar", "wheel"]), st.integers(0, 3))
def test_changed_bytes_end_with_a_code(seed: int, layer: str, kind: int) -> None:
    draw = random.Random(seed)

    def changed(data: bytes) -> bytes:
        at, count = draw.randrange(len(data)), draw.randrange(1, 600)
        inserted = draw.randbytes(count if kind == 2 else 1)
        return data[:at] if kind == 3 else data[:at] + inserted + data[at + (count if kind == 1 else kind == 0) :]

    content = wheel({"x/y.py": "print()\n" * 50, "x-1.data/purelib/z.py": "a = 1\n"})
    files = {"topology.json": b"{}" * 40, f"wheels/any/{WHEEL}": changed(content) if layer == "wheel" else content}
    whole = tar(files)
    data = gzip.compress(changed(whole) if layer == "tar" else whole, 1)
    with attempt(changed(data) if layer == "gzip" else data) as (refused, _, target):
        assert refused in {"", *ALLOWED}
        assert target.exists() == (not refused)
