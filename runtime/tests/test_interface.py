"""A document that does not fit its program is refused; `wallaroo diff` names the parts."""

import json
import re
from pathlib import Path

import pytest

from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.application import load_application

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
def test_a_document_that_was_changed_by_hand(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = edited(app)
    assert refused(document) == (
        'W403 worker "main" hosts another application; its interface hash is HASH; the topology has HASH\n'
        "  at /workers/0/interface_hash\n"
        "  fix: emit the topology again with `wallaroo emit APP`, or start the program that emitted it"
    )
    assert main(["diff", str(app), str(document)]) == 0
    shown = capsys.readouterr().out
    assert 'max_message_bytes of source "reverse" (0/sources/0) was 16777216 and is 9\n' in shown
    assert 'kind of step "reverse" (0/steps/0) was computation and is computation_multi\n' in shown
