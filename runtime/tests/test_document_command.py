"""Commands that read a topology take programs too: `validate`, `explain`, `graph` and `diff`."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.manifest import put_manifest
from wallaroo_runtime.checkpoint.directory import default_directory
from wallaroo_runtime.cli.document import split_document
from wallaroo_runtime.cli.main import main

PROGRAM = """
import wallaroo

def application_setup(args):
    (host, port), *_ = wallaroo.tcp_parse_input_addrs(args)
    name = args[args.index("--name") + 1] if "--name" in args else "Reverse"
    source = wallaroo.source("texts", wallaroo.TCPSourceConfig(host, port, decode))
    return wallaroo.build_application(name, source.to(reverse).to_sink(wallaroo.TCPSinkConfig(host, "9", encode)))

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


def said(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert main([str(each) for each in arguments]) == code
    return capsys.readouterr().out


@pytest.mark.slow
def test_commands_take_a_program(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(PROGRAM)
    assert said(capsys, "validate", app, "--in", "127.0.0.1:1") == (
        'application "Reverse" is correct: 1 source, 1 step, 1 sink\n'
    )
    found = json.loads(said(capsys, "validate", "--json", app, "-i", "127.0.0.1:1", "--", "--name", "Other"))
    digest = found.pop("interface_hash")
    assert found.pop("time")
    assert (found, digest[:7]) == ({"application": "Other", "sources": 1, "steps": 1, "sinks": 1}, "sha256:")
    document = tmp_path / "as text"
    document.write_text(said_document(app, "127.0.0.1:2"))
    assert json.loads(said(capsys, "validate", "--json", document, "--out", "127.0.0.1:8"))["application"] == "Reverse"
    assert said(capsys, "diff", app, document, "--in", "127.0.0.1:2") == "nothing changed\n"
    assert "reverse" in said(capsys, "graph", app, "--in", "127.0.0.1:1")
    assert said(capsys, "explain", app, "--in", "127.0.0.1:1").startswith('application "Reverse"')


@pytest.mark.slow
def test_a_program_is_compared_with_its_own_checkpoint(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    app = tmp_path / "app.py"
    app.write_text(PROGRAM)
    assert main(["diff", str(app), str(app), "--in", "127.0.0.1:2"]) == 2
    assert "it is no checkpoint, and no run of it has left one" in capsys.readouterr().err
    checkpoint = default_directory("Reverse", "python", app)
    checkpoint.mkdir(parents=True)
    put_manifest(checkpoint, json.loads(said_document(app, "127.0.0.1:2")))
    assert said(capsys, "diff", app, app, "--in", "127.0.0.1:2") == "nothing changed\n"
    app.write_text(PROGRAM.replace('name="reverse"', 'name="turn"'))
    assert "turn" in said(capsys, "diff", app, app, "--in", "127.0.0.1:2")


def said_document(app: Path, address: str) -> str:
    """Return the topology that a program emits."""
    from wallaroo_runtime.program.application import load_application

    return json.dumps(load_application(str(app), ["--in", address], address, "").topology.document)


WORDS = st.lists(st.text("abc", min_size=1, max_size=3), max_size=4)


@given(WORDS, st.none() | st.integers(1, 9), WORDS)
def test_the_program_sees_addresses_and_what_follows_the_dashes(
    own: list[str], port: int | None, app: list[str]
) -> None:
    address = [] if port is None else ["--in", f"h:{port}"]
    parts = split_document([*own, *address, "--json", "--", *app])
    assert parts.own == [*own, *address, "--json"]
    assert parts.app == [*address, *app]


def test_errors_of_the_use_of_validate_are_no_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "no.json"
    assert main(["validate", "--json", str(missing)]) == 2
    out, err = capsys.readouterr()
    assert (out, json.loads(err)[0]["code"]) == ("", "R616")
