"""What docs/testing-go.md promises: its program and its tests are run as printed."""

import re
import subprocess
from pathlib import Path

import pytest

from wallaroo_runtime.program.build import init

PAGE = Path(__file__).resolve().parent.parent / "docs" / "testing-go.md"


@pytest.mark.slow
def test_the_page_s_tests_pass(tmp_path: Path) -> None:
    blocks = re.findall(r"```go\n// (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [name for name, _ in blocks] == ["main.go", "main_test.go"]
    for name, text in blocks:
        (tmp_path / name).write_text(text, encoding="utf-8")
    init(tmp_path)
    formatted = subprocess.run(["gofmt", "-l", "."], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert formatted.stdout == ""
    done = subprocess.run(["go", "test", "-v", "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = set(re.findall(r"^--- PASS: (\w+)", done.stdout, re.MULTILINE))
    assert passed == set(re.findall(r"^func (Test\w+)", blocks[1][1], re.MULTILINE))
