"""Packages of Go programs that are found by their place, as Wallaroo's programs have them."""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from wallaroo_runtime.program.build import build
from wallaroo_runtime.program.gopath import imports_of, packages_by_place

CASE = Path(__file__).parents[2] / "tests" / "cases" / "reverse" / "app.go"
STANDARD = ("time", "fmt", "net/http", "encoding")


@dataclass
class Layout:
    """A program in Go's former layout: files by their paths, and what each of its packages imports."""

    program: str
    files: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)  # path by which it is imported → directory

    def write(self, root: Path) -> Path:
        imported = list(self.packages)
        for path, place in self.packages.items():
            # What a program has vendored is there for what lies below it.
            others = [each for each in imported[imported.index(path) + 1 :] if self.sees(place, each)]
            imports = "".join(f'import _ "{each}"\n' for each in others)
            self.files[f"{place}/code.go"] = f"package {path.rpartition('/')[2]}\n\n{imports}"
        vendored = {each for each in imported if "/vendor/" in self.packages[each]}
        first = "".join(f'import _ "{each}"\n' for each in dict.fromkeys([*imported[:1], *sorted(vendored)]))
        self.files[f"{self.program}/more.go"] = f'package main\n\nimport "time"\n{first}\nvar _ = time.Now\n'
        for name, text in self.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        shutil.copy(CASE, root / self.program)
        return root / self.program

    def sees(self, place: str, path: str) -> bool:
        return "/vendor/" not in self.packages[path] or place.startswith(f"{self.program}/")


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    name = draw(st.sampled_from(["app", "shop", "time", "fmt", "encoding"]))
    folder = draw(st.sampled_from(["go/src", "src", "work/go/src"]))
    layout = Layout(f"{folder}/{name}")
    below = draw(st.lists(st.sampled_from(["lib", "internal/deep", "a/list", "time"]), max_size=3, unique=True))
    beside = draw(st.lists(st.sampled_from(["lib/one", "shared", "encoding/own"]), max_size=2, unique=True))
    hosted = draw(
        st.lists(st.sampled_from(["example.org/x", "example.org/x/y", "host.example/z"]), max_size=2, unique=True)
    )
    layout.packages |= {f"{name}/{path}": f"{layout.program}/{path}" for path in below}
    layout.packages |= {path: f"{folder}/{path}" for path in beside}
    layout.packages |= {path: f"{layout.program}/vendor/{path}" for path in hosted}
    module = draw(st.sampled_from(["none", "own", "above", "other"]))
    if any("internal" in path for path in below) and module in ("above", "other"):
        module = "none"  # a module of another name may not import it: nor does go let it
    names = {"own": name, "above": "example.org/all", "other": "example.org/other"}
    place = folder.partition("/")[0] if module == "above" else layout.program
    if module != "none":
        layout.files[f"{place}/go.mod"] = f"module {names[module]}\n\ngo 1.23\n"
        if draw(st.booleans()):
            layout.files[f"{place}/go.work"] = "go 1.24\n\nuse .\n"
    if below and draw(st.sampled_from([False, True])):
        layout.files[f"{layout.program}/{below[0]}/go.mod"] = f"module {name}/{below[0]}\n\ngo 1.23\n"
    return layout


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, pytest.param(30, marks=pytest.mark.long)])
def test_a_program_in_the_former_layout_is_built_unchanged(count: int) -> None:
    settings(deadline=None, max_examples=count, phases=[Phase.generate])(given(layouts())(check_build))()


def check_build(layout: Layout) -> None:
    """Build a program; none of its files changes."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOPROXY", "off")
        patch.setenv("GOWORK", "")
        program = layout.write(Path(folder).resolve())
        before = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
        assert build(program).is_file()
        assert {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_what_a_module_requires_is_taken_from_its_vendor_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    layout = Layout("shop", packages={"example.org/x": "shop/vendor/example.org/x"})
    layout.files["shop/go.mod"] = "module example.org/shop\n\ngo 1.23\n\nrequire example.org/x v1.2.3\n"
    layout.files["shop/vendor/modules.txt"] = "# example.org/x v1.2.3\n## explicit\nexample.org/x\n"
    assert build(layout.write(tmp_path.resolve())).is_file()


@settings(deadline=None, max_examples=200)
@given(layout=layouts())
def test_each_package_is_found_where_it_is(layout: Layout) -> None:
    """Without the compiler: what the program's module does not have is found, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        program = layout.write(root)
        for name in STANDARD:
            (root / "std" / name).mkdir(parents=True)
        found = packages_by_place(program, {}, root / "std", {"wallarooapi"}, has_module=False)
        assert found == {path: root / place for path, place in layout.packages.items()}


def test_imports_of_a_file() -> None:
    code = """// import "a"
/* import "b" */
package p // import "c"

import "d"
import ("e"; . "f/g"
	_ `h` // "i"
	/* "j" */)
import l "../k"
import m "./k"
import "C"

const text = "n"

func f() { g("import", "o") }
"""
    assert list(imports_of(code)) == ["d", "e", "f/g", "h", "C"]
