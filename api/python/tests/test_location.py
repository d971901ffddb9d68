"""Where a class is declared, while its file changes."""

import sys
import tempfile
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as some

from wallaroo.diagnostic.location import Location, declared_at

NAME = "program_that_changes"
NAMES = some.lists(some.sampled_from(["A", "B", "C"]), max_size=3, unique=True)


@given(some.lists(NAMES, min_size=1, max_size=4))
def test_each_class_is_found_in_the_file_as_it_is(versions: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        file, module = Path(folder, "program.py"), ModuleType(NAME)
        module.__file__ = str(file)
        patch.setitem(sys.modules, NAME, module)
        for number, names in enumerate(versions):
            # Each version has another size: two may be written at one moment of the file system's clock.
            text = "\n" * 10 * number + "".join(f"class {name}:\n    class Within:\n        pass\n" for name in names)
            file.write_text(text)
            exec(compile(text, str(file), "exec"), vars(module))
            for again in range(2 * len(names)):
                at = again % len(names)
                found, line = getattr(module, names[at]), 10 * number + 3 * at + 1
                assert declared_at(found) == declared_at(found()) == Location(str(file), line)
                assert declared_at(found.Within) == Location(str(file), line + 1)
