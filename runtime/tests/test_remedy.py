"""Remedies that fit the cause: addresses, token files, directories of checkpoints, documents that are no JSON."""

import contextlib
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from support.ordinary import STRANGER, close, ordinary
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.durable.file import user_name
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service.credential import read_token


def test_an_address_of_another_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["receive", "--listen", "192.0.2.1:17010"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("R714 receive cannot listen at 192.0.2.1:17010; Cannot assign requested address\n")
    assert "give another HOST:PORT of this machine (`ip addr`) with --listen" in said


def test_a_token_file_may_be_that_of_the_monitor(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        read_token(tmp_path / "token")
    fix = f"make it with `(umask 077; openssl rand -hex 32 > {tmp_path}/token)`"
    assert (
        caught.value.diagnostics[0].fix == f"{fix}; remote gateways and egress and their driver need the same content"
    )


@pytest.mark.parametrize("name", ["app", "in/the app", ""])
def test_a_directory_that_root_must_make(name: str, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    close(closed)
    place = closed / name if name else closed
    with ordinary(), pytest.raises(RunError) as caught:
        HeldDirectory.take(place)
    (finding,) = caught.value.diagnostics
    closed.chmod(0o700)
    assert finding.code == "R715"
    if finding.message.endswith("Permission denied"):
        path = f"'{place}'" if " " in name else place
        made = f"`install -d -m 700 -o {user_name(closed.parent.stat().st_uid)} {path}`"
        assert finding.fix == f"give another --checkpoint, or let root make it for you: {made}"
    else:
        assert name == "" and finding.message.endswith(f"it belongs to user {STRANGER}")


@given(some.sampled_from(["run", "explain", "validate", "graph", "emit", "submit"]), some.data())
def test_a_document_that_is_no_topology_is_named(
    tmp_path_factory: pytest.TempPathFactory, command: str, data: some.DataObject
) -> None:
    file = tmp_path_factory.mktemp("document") / "app.json"
    content = json.dumps({"topology_version": 1, "application": "shop"})
    file.write_text(content[: data.draw(some.integers(0, len(content)))])
    said = io.StringIO()
    # The findings of `validate` are its results.
    with contextlib.redirect_stdout(said) if command == "validate" else contextlib.redirect_stderr(said):
        assert main([command, str(file), *["--master", "local[2]"][: 2 if command == "submit" else 0]]) == 3
    assert said.getvalue().startswith("T1") and str(file) in said.getvalue()
