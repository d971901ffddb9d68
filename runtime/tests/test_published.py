"""The copy of the Go SDK under its published path: what is rewritten, where it is, and which path a program imports."""

import ast
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo.topology import SDK_VERSION
from wallaroo_runtime.program import published
from wallaroo_runtime.program.import_path import MODULE, NESTED, PUBLISHED, import_path, imported, imports_of, root_of
from wallaroo_runtime.program.published import copies_directory, module_files, published_directory
from wallaroo_runtime.program.sdk import sdk_directory

ROOT = Path(__file__).parents[2]
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,40}", fullmatch=True)
PATHS = st.builds(
    lambda host, names: "/".join([f"{host}.example", *names]), NAMES, st.lists(NAMES, min_size=1, max_size=5)
)
DESCRIPTOR = re.compile(r'_rawDesc = "" \+\n((?:\t".*" ?\+?\n)+)')
PARTS = ("", "/goka", "/stream", "/goka/codec", "/otel", "/otels", "/gokas", "s", "s/goka", ".Args")


def descriptor_in(text: str) -> FileDescriptorProto:
    """Return the raw descriptor of a generated Go file; Go's literals have the escapes of Python's."""
    found = DESCRIPTOR.search(text)
    assert found
    literal = "".join(line.strip().removesuffix("+").strip() for line in found[1].splitlines())
    raw: str = ast.literal_eval(literal.replace('""', ""))
    return FileDescriptorProto.FromString(raw.encode("latin-1"))


@settings(max_examples=30, deadline=None)
@given(path=PATHS, package=st.sampled_from(["workerpb", "recordpb"]))
def test_descriptors_name_the_package_that_they_are_in(path: str, package: str) -> None:
    file = sdk_directory() / "internal" / package / f"{package.removesuffix('pb')}.pb.go"
    expected = descriptor_in(file.read_text())
    expected.options.go_package = f"{path}/internal/{package}"
    assert descriptor_in(published._renamed(file.name, file.read_bytes(), path).decode()) == expected


def test_no_path_is_left() -> None:
    files = module_files(sdk_directory(), "example.org/sdk", left_out=())
    originals = {name: (sdk_directory() / name).read_bytes() for name in files}
    assert {name for name in files if b'"wallarooapi' in files[name]} <= {"internal/overlay/overlay_test.go"}
    # What was written is what was read, but for the path.
    assert {name for name, data in files.items() if data != originals[name] and b"example.org/sdk" not in data} == set()
    assert files["go.mod"].startswith(b"module example.org/sdk\n")
    for nested in (files[f"{name}/go.mod"] for name in NESTED):
        assert b"\twallarooapi" not in nested and b"\nreplace example.org/sdk => ../\n" in nested
    assert b"package wallarooapi\n" in files["args.go"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('import wa "wallarooapi"', 'import wa "x.example/y"'),
        ('import "wallarooapi/stream"', 'import "x.example/y/stream"'),
        ('HasPrefix(name, "wallarooapi.")', 'HasPrefix(name, "x.example/y.")'),
        ("// a wallarooapi.Computation (T223)", "// a wallarooapi.Computation (T223)"),
        ("// Source: Wallaroo 0.5, package wallarooapi/application.",) * 2,
        ("package wallarooapi_test",) * 2,
        ('import "wallarooapis"',) * 2,
    ],
)
def test_what_is_a_path(before: str, after: str) -> None:
    assert published._renamed("a.go", before.encode(), "x.example/y") == after.encode()


@given(
    st.lists(st.tuples(st.sampled_from([MODULE, PUBLISHED, "example.org"]), st.sampled_from(PARTS)), max_size=6),
    st.lists(st.tuples(st.sampled_from([MODULE, PUBLISHED]), st.sampled_from(["", "/worker"])), max_size=2),
)
def test_the_modules_and_the_path_that_a_program_imports(
    below: list[tuple[str, str]], main: list[tuple[str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder)
        (module / "order").mkdir()
        for file, paths in ((module / "order" / "order.go", below), (module / "main.go", main)):
            file.write_text("".join(f'import "{root}{part}"\n' for root, part in paths))
        (module / "main_test.go").write_text(f'import "{PUBLISHED}/wallarootest"\n')
        known = [(root, part) for root, part in below if root != "example.org" and part[:1] in ("", "/")]
        assert imports_of(module / "order" / "order.go") == [root + part for root, part in known]
        nested = {"/goka": "/goka", "/goka/codec": "/goka", "/otel": "/otel"}
        expected = {root + nested.get(part, "") for root, part in known}
        assert imported([module / "order" / "order.go"]) == expected
        roots = {root for root, _ in main} or {root for root, _ in known} | {PUBLISHED}
        assert import_path(module, module) == (PUBLISHED if roots == {PUBLISHED} else MODULE)


def test_nobody_else_can_register_the_path_and_docs_have_it() -> None:
    host = PUBLISHED.split("/")[0]
    # Once it has a home: that one, in place of this line.
    assert host.rsplit(".", 1)[-1] in ("invalid", "example", "test"), "RFC 2606"
    assert root_of(PUBLISHED + "/stream") == PUBLISHED
    page = (ROOT / "docs" / "go-modules.md").read_text(encoding="utf-8")
    assert f"`{PUBLISHED}/stream`" in page and f"go get {PUBLISHED}@v{SDK_VERSION}\n" in page
    assert all(f"{name}/v{SDK_VERSION}" in page and f"`{PUBLISHED}/{name}`" in page for name in NESTED)


@pytest.fixture
def own_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an SDK of a few files that is the installed one, with a cache of its own."""
    sdk = tmp_path / "installed"
    for name in ("go.mod", "args.go", "worker/main.go", "worker/example_test.go"):
        (sdk / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(sdk_directory() / name, sdk / name)
    monkeypatch.setattr(published, "sdk_directory", lambda: sdk)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return sdk


def test_a_copy_has_the_name_of_its_content(own_sdk: Path) -> None:
    first = published_directory()
    assert published_directory() == first and first.parent == copies_directory()
    assert sorted(path.name for path in first.rglob("*.*")) == ["args.go", "go.mod", "main.go"]
    assert first.stat().st_mode & 0o077 == 0
    (own_sdk / "args.go").write_text("package wallarooapi\n\nvar Args = 1\n")
    second = published_directory()
    assert second != first
    assert (second / "args.go").read_text() == "package wallarooapi\n\nvar Args = 1\n"
    assert (first / "args.go").read_bytes() != (second / "args.go").read_bytes()


def test_what_is_missing_or_was_changed_is_written_again(own_sdk: Path) -> None:
    directory = published_directory()
    before = {path: path.read_bytes() for path in directory.rglob("*.*")}
    kept = (directory / "args.go").stat().st_mtime_ns
    (directory / "worker" / "main.go").unlink()
    (directory / "go.mod").write_text("module example.org/mine\n")
    with ThreadPoolExecutor(4) as together:
        assert set(together.map(lambda _: published_directory(), range(8))) == {directory}
    assert {path: path.read_bytes() for path in directory.rglob("*.*")} == before
    assert (directory / "args.go").stat().st_mtime_ns == kept
