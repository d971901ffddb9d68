"""Faults whose remedy was once a wrong one: what is said now leads to what is wrong."""

import socket
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from support.line_program import line_program
from support.service import serving
from wallaroo_runtime.cli.conf import conf_of
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import ServiceClient
from wallaroo_runtime.spark.realtime import query as query_module
from wallaroo_runtime.spark.realtime.query import RealTimeQuery

APP = line_program("Lines")


@pytest.mark.parametrize(("kind", "other"), [("gateway", "an egress"), ("egress", "a gateway")])
def test_gateway_and_egress_swapped(tmp_path: Path, kind: str, other: str) -> None:
    with serving(other.split()[1], tmp_path) as place, pytest.raises(RunError) as caught:
        ServiceClient(replace(place.attach(), kind=kind), 1.0).call("Status", pb.StatusRequest())
    address, name = place.service.address, other.split()[1]
    assert str(caught.value) == (
        f"R608 --{kind} {address} names {other}\n"
        f"  fix: give the address of the {kind} with --{kind}, that of the {name} with --{name}"
    )


@pytest.mark.parametrize("value", ["abc", "0", "0.000", "-1", "", "1e3", "1 s"])
def test_a_time_of_batches_that_is_none(value: str) -> None:
    with pytest.raises(RunError) as caught:
        conf_of([f"spark.wallaroo.realtime.batchSeconds={value}"])
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"R608 --conf spark.wallaroo.realtime.batchSeconds={value} is not a time\n"
        "  fix: give seconds, more than 0, e.g. 60"
    )


@pytest.mark.parametrize("value", ["1", "60", "0.5", "10.25"])
def test_a_time_of_batches(value: str) -> None:
    assert conf_of([f"spark.wallaroo.realtime.batchSeconds={value}"]) == {query_module.BATCH_SETTING: value}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--gateway", "127.0.0.1:1", "--egress", "127.0.0.1:2"),
            "--gateway needs --conf spark.wallaroo.service.tokenFile",
        ),
        (
            ("--gateway", "nobody=127.0.0.1:1", "--conf", "spark.wallaroo.service.tokenFile={token}"),
            '--gateway: no source is called "nobody"',
        ),
    ],
)
def test_services_that_do_not_fit_leave_no_checkpoint(
    tmp_path: Path, options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app, token = tmp_path / "app.py", tmp_path / "token"
    app.write_text(APP)
    token.write_text("0" * 64)
    token.chmod(0o600)
    given = [option.format(token=token) for option in options]
    assert main(["run", str(app), "--checkpoint", str(tmp_path / "checkpoint"), *given]) == 2
    err = capsys.readouterr().err
    assert f"R608 {said}" in err
    assert "new checkpoint" not in err
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize(
    ("option", "fix"),
    [("--n", "did you mean --in? After -- the application sees it"), ("--depth", "After -- the application sees it")],
)
def test_an_option_of_the_program_goes_after_two_hyphens(
    option: str, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", ".", option, "2"]) == 2
    assert capsys.readouterr().err == f"R608 {option} is not an option of wallaroo validate\n  fix: {fix}\n"


def resetting(listener: socket.socket) -> None:
    """Close a connection as a gateway does that does not accept what came."""
    connection = listener.accept()[0]
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    while connection.recv(65536):
        pass
    connection.close()


def test_a_source_that_closes_the_connection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("a\nb\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=resetting, args=(listener,), daemon=True).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        assert main(["send", "--host", address, "--file", str(tmp_path / "text"), "--framing", "newline"]) == 1
    assert capsys.readouterr().err == (
        f"R618 no connection to {address}; it was closed after 2 messages were sent, not all of which are safe, with "
        "--framing newline: Connection reset by peer\n  fix: start the application and wait until it reports that it "
        "is "
        "initialized; if it runs, its console says why it closed the connection (e.g. R606: --framing differs from "
        "the source's framing); then send again\n"
    )


class Killed:
    """A query whose Java virtual machine is gone."""

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - PySpark's name
        raise Py4JError("An error occurred while calling o215.lastProgress")  # noqa: EM101, TRY003 - as Py4J does


def test_java_that_is_killed_while_it_is_asked_has_ended(tmp_path: Path) -> None:
    query = object.__new__(RealTimeQuery)
    query.__dict__.update(_is_stopped=False, _query=Killed(), _log=tmp_path / "spark.log")
    with pytest.raises(RunError) as caught:
        query.latest()
    assert str(caught.value).startswith("R617 the Spark process ended unexpectedly; the Java virtual machine is gone\n")


@pytest.mark.parametrize("end", [-1, 5])
def test_what_is_not_committed_at_the_end_is_said(end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_module, "END_S", 0.05)
    operators = SimpleNamespace(endBatches=lambda _: None, end=lambda _: end)
    report = {"sources": [{"endOffset": '{"offset": 5}'}]}
    query = object.__new__(RealTimeQuery)
    query.__dict__.update(
        _operators=operators, _settings="", _query=SimpleNamespace(isActive=True, lastProgress=report), _findings=[]
    )
    query._end_batch()
    said = [str(finding) for finding in query.new_findings()]
    assert query.new_findings() == []
    assert said == (
        [
            "R799 real-time mode has ended, and its last batch was not committed within 0.05 s: sinks did not take "
            "their output, or a call of user code took longer\n  fix: nothing is lost: let the receivers read, "
            "and run again with this checkpoint; `wallaroo state rescale` may refuse the checkpoint until a run ends "
            "without this finding"
        ]
        if end < 0
        else []
    )
