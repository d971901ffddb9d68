"""What commands print: to streams that are closed, full or left, and text that a locale cannot show."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from wallaroo_runtime.cli import submit

WALLAROO = str(Path(sys.executable).with_name("wallaroo"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        ("{ sleep 2; COMMAND; } | true", 1, ""),
        (
            "COMMAND > /dev/full",
            1,
            "R626 the disk of output, checkpoint or caches takes nothing more; ",
        ),
        ("COMMAND >&-", 0, ""),
        ("COMMAND >&- 2>&- <&-", 0, ""),
    ],
)
@pytest.mark.parametrize("command", ["explain R714", "status --help", "ps --json"])
def test_output_that_nothing_takes(command: str, redirected: str, code: int, said: str, tmp_path: Path) -> None:
    script = redirected.replace("COMMAND", f'"{WALLAROO}" {command}') + "; exit ${PIPESTATUS[0]}"
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "PYTHONUNBUFFERED": ""}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    if command == "ps --json":  # it prints nothing
        code, said = 0, ""
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(said) and (said or not done.stderr)
    assert "Exception ignored" not in done.stderr


@pytest.mark.slow
def test_a_closed_stream_is_no_other_file(tmp_path: Path) -> None:
    program = """
        import os, sys
        from wallaroo_runtime.cli.start import open_streams
        open_streams()
        own = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
        print("of this process")
        os.system("echo of a child; echo of a child >&2")
        sys.exit(0 if own > 2 else 1)
    """
    file = tmp_path / "journal"
    line = [sys.executable, "-c", textwrap.dedent(program), str(file)]
    done = subprocess.run(["bash", "-c", '"$@" >&- 2>&- <&-', "closed", *line], check=False, timeout=120)
    assert (done.returncode, file.read_bytes()) == (0, b"")


@pytest.mark.slow
def test_text_that_the_locale_cannot_show_is_escaped(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [WALLAROO, "new", "python", "caf\u00e9"], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.startswith("caf\\xe9/")


@pytest.mark.parametrize("as_json", [True, False])
def test_what_is_said_of_a_submission(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    submit.tell("application_1: running", as_json=as_json)
    out = capsys.readouterr().err
    found = json.loads(out) if as_json else {"state": "submitted", "note": out.rstrip("\n")}
    assert (found["state"], found["note"]) == ("submitted", "application_1: running")
