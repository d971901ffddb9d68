"""Where interface hashes differ the error names the parts."""

import json
import re
from pathlib import Path

import pytest

from wallaroo_runtime.errors import WORKER, RunError, other_interface
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.program.interface_diff import explained

PROGRAM = """
import wallaroo

def application_setup(args):
    builder = wallaroo.ApplicationBuilder("Reverse")
    builder.new_pipeline("reverse", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode))
    builder.to(reverse)
    return builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode)).build()

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    return data.decode()

@wallaroo.computation(name="reverse")
def reverse(text):
    return text[::-1]

@wallaroo.encoder
def encode(text):
    return text
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "reverse.py"
    path.write_text(PROGRAM)
    return path


def refused(path: Path) -> str:
    with pytest.raises(RunError) as caught:
        load_application(str(path), (), "", "")
    return re.sub("sha256:[0-9a-f]{64}", "HASH", str(caught.value))


def edited(app: Path) -> Path:
    """Return a file with the topology of the program, changed by hand."""
    document = json.loads(json.dumps(load_application(str(app), (), "", "").topology.document))
    document["pipelines"][0]["steps"][0]["kind"] = "computation_multi"
    document["pipelines"][0]["sources"][0]["max_message_bytes"] = 9
    path = app.with_suffix(".json")
    path.write_text(json.dumps(document))
    return path


@pytest.mark.slow
def test_a_document_that_was_changed_by_hand(app: Path) -> None:
    assert refused(edited(app)) == (
        'W403 worker "main" hosts another application; its interface hash is HASH; the topology has HASH\n'
        "  at /workers/0/interface_hash\n"
        f"  | from what {app} declares to the document:\n"
        '  | max_message_bytes of source "reverse" (0/sources/0) was 16777216 and is 9\n'
        '  | kind of step "reverse" (0/steps/0) was computation and is computation_multi\n'
        "  fix: emit the topology again with `wallaroo emit APP`, or start the program that emitted it"
    )


@pytest.mark.slow
def test_a_program_that_is_gone(app: Path) -> None:
    path = edited(app)
    app.unlink()
    assert f"  | {app} does not say what it declares: {app} is not a Python file" in refused(path)


@pytest.mark.slow
def test_a_program_that_was_changed_after_its_document_was_emitted(app: Path) -> None:
    topology = load_application(str(app), (), "", "").topology
    app.write_text(PROGRAM.replace('name="reverse"', 'name="turn around"'))
    error = RunError([other_interface("main", "a", "b")], WORKER)
    assert str(explained(error, topology)) == (
        'W403 worker "main" hosts another application; its interface hash is a; the topology has b\n'
        f"  | from what {app} declares to the document:\n"
        '  | name of step "reverse" (0/steps/0) was "turn around" and is "reverse"\n'
        "  fix: emit the topology again with `wallaroo emit APP`, or start the program that emitted it"
    )
    other = RunError.of("R602", problem="was not found", reason="no `java` on PATH")
    assert explained(other, topology).diagnostics == other.diagnostics
