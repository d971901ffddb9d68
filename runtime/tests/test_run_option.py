"""Options of `run`, drawn: what the table says of each is what parser, application and engines do with it."""

import contextlib
import io
import re
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qs, quote

import pytest
from hypothesis import given
from hypothesis import strategies as some

from support.small_checkpoint import word_count
from support.word_count import WORD_COUNT
from wallaroo_runtime.cli import run, submit
from wallaroo_runtime.cli.conf import FSYNC, bounds_of, settings_help
from wallaroo_runtime.cli.main import command_parser, main
from wallaroo_runtime.cli.option import split
from wallaroo_runtime.cli.run_option import ONLY_RUN, OPTIONS, OWN, RunOption, without_meaning
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.monitor.access import has_token, parse_address
from wallaroo_runtime.monitor.server import MonitorServer
from wallaroo_runtime.peer.configuration import gateway_request
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.run.mode import MicroBatchMode
from wallaroo_runtime.run.monitor_feed import start_monitor
from wallaroo_runtime.run.options import RunOptions
from wallaroo_runtime.run.realtime import RealTimeMode
from wallaroo_runtime.topology.load import load_document

VALUES = {"--stop-when-idle": "7", "--monitor": "off"}
options = some.lists(some.sampled_from(OPTIONS), unique_by=lambda each: each.names)


def words(option: RunOption) -> list[str]:
    """Return what a user may write."""
    choices: Any = option.settings.get("choices")
    value = VALUES.get(option.names[0]) or (choices[-1] if choices else "local[2]")
    return [option.names[0], value] if option.takes_value else [option.names[0]]


@given(options)
def test_each_is_taken_and_means_something_on_its_engine(found: list[RunOption]) -> None:
    given_words = [word for option in found for word in words(option)]
    parts = split(["app.py", *given_words, "--of-the-app"], frozenset(OWN))
    seen = [word for option in found if option.is_shown_to_app for word in words(option)]
    assert parts.app == [*seen, "--of-the-app"] and not parts.without_effect
    arguments = command_parser()[0].parse_args(["run", *parts.own])
    assert all(getattr(arguments, option.attribute) not in (None, False, []) for option in found)
    assert {*without_meaning(arguments)} == {option.names[0] for option in found if option.of_spark}


@pytest.mark.parametrize("memory", ["--engine memory", "--debug"])
@pytest.mark.parametrize("option", [each for each in OPTIONS if each.of_spark], ids=lambda each: each.names[0])
def test_one_of_spark_is_refused_in_memory(option: RunOption, memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = option.names[0]
    assert main(["run", "app.py", *memory.split(), *words(option)]) == 2
    said = f"R608 {name} means nothing with {memory}\n  fix: leave out {name}, or {memory}\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(("setting", "microbatch", "realtime"), [
    ("", "interval", "batch"), ("interval", "interval", "interval"), ("batch", "batch", "batch"),
    ("never", "never", "never"),
])  # fmt: skip
def test_the_journal_is_synced_as_the_user_says(setting: str, microbatch: str, realtime: str) -> None:
    topology = load_document(WORD_COUNT)
    plan, chosen = compile_topology(topology, shuffle_partitions=1), bounds_of({FSYNC: setting} if setting else {})
    bounds = [mode.bounds(chosen) for mode in (MicroBatchMode(), RealTimeMode())]
    requests = [gateway_request(topology, plan, [], each) for each in bounds]
    assert [request.fsync for request in requests] == [microbatch, realtime]


def test_what_submit_has_is_marked() -> None:
    names = {each.names[0] for each in OPTIONS if not each.is_submitted}
    parser = command_parser()[1]["submit"]
    submitted = " ".join(parser.format_help().split())
    assert {each.names[0] for each in OPTIONS} - {*parser.options()} == names
    assert (
        f"Of the options of `run` it does not take {', '.join(ONLY_RUN)}. example: " in submitted
        and {*ONLY_RUN} == names
    )
    assert "Go directory" not in submitted and "FILE archive, as `wallaroo pack` makes it, or topology" in submitted
    assert submitted.startswith("usage: wallaroo submit FILE [--master URL] [OPTIONS] ")
    assert all(each in submitted for each in settings_help().split())
    assert frozenset(OWN) == run.USED


@given(some.sampled_from([each for each in OPTIONS if not each.is_submitted]), some.booleans())
def test_what_only_run_has_is_named_by_submit(option: RunOption, is_first: bool) -> None:
    given_words = words(option)
    with pytest.raises(RunError) as caught:
        submit.split_arguments([*given_words, "app.tar.gz"] if is_first else ["app.tar.gz", *given_words])
    reason = f"{option.names[0]} is an option of `run`; `submit` does not have it"
    assert str(caught.value) == f"R608 {reason}\n  fix: leave it out"


@given(
    some.sampled_from(["run", "emit"]),
    some.sampled_from(["app.py", "folder", "app.tar.gz", "app.json"]),
    some.sampled_from([["--restart", "on-failure"], ["--restart=never"], ["--deploy-mode", "client"], ["--dry-run"]]),
    some.lists(some.sampled_from(["--depth", "3", "--in=:1"]), max_size=2),
)
def test_what_only_submit_has_does_not_go_to_the_application(
    command: str, app: str, given_words: list[str], others: list[str]
) -> None:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        assert main([command, app, *others, *given_words]) == 2
    name = given_words[0].partition("=")[0]
    fix = "give it to `wallaroo submit`. After -- the application sees it"
    assert said.getvalue() == f"R608 {name} is an option of `wallaroo submit`\n  fix: {fix}\n"
    assert split([app, "--", *given_words], run.USED).app == given_words


@pytest.mark.parametrize("name", ["app.tar.gz", "app.json"])
def test_what_is_packed_takes_no_more_arguments(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).touch()
    assert main(["run", str(tmp_path / name), "--in", ":7010", "--depth", "3"]) == 2
    said = "R608 --depth 3: a packed application has its arguments already\n  fix: give them to `wallaroo pack`\n"
    assert capsys.readouterr().err == said


HOSTS = some.sampled_from(["", "127.0.0.1", "localhost", "[::1]", "host.example"])
PORTS = some.from_regex(r"[0-9]{1,6}|[0-9]+[a-z]+[0-9]*|", fullmatch=True)
ADDRESSES = some.builds("{}:{}".format, HOSTS, PORTS) | some.from_regex(r"[0-9]{1,6}[a-z]?|on|true|", fullmatch=True)


@given(ADDRESSES | some.just("off"), some.booleans(), some.booleans(), some.sampled_from([run, submit]))
def test_what_is_no_address_of_the_monitor_is_refused(
    text: str, is_after: bool, is_one_word: bool, command: ModuleType
) -> None:
    given_words = [f"--monitor={text}"] if is_one_word else ["--monitor", text]
    own = command.split_arguments(["app.py", *given_words] if is_after else [*given_words, "app.py"]).own
    tokens = [command.__name__.rpartition(".")[2], *own]
    if text == "off" or parse_address(text):
        assert command_parser()[0].parse_args(tokens).monitor == text
    else:
        with pytest.raises(RunError, match="R608 argument --monitor: .* is no address"):
            command_parser()[0].parse_args(tokens)


@pytest.mark.parametrize("value", ["", " "])
def test_an_unset_variable_is_no_checkpoint(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "app.py", "--checkpoint", value, "--fresh"]) == 2
    assert "R608 " in (said := capsys.readouterr().err) and "--checkpoint" in said


def test_the_token_of_the_monitor_is_that_of_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    execute = Mock(return_value=0)
    monkeypatch.setattr("wallaroo_runtime.run.run.execute", execute)
    file, token = tmp_path / "monitor-token", "a/b+c&" * 4
    file.write_text(token + "\n")
    words = ["run", "app.py", "--conf", f"spark.wallaroo.monitor.tokenFile={file}"]
    file.chmod(0o644)
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("R640 ") and not execute.called
    file.chmod(0o600)
    assert main(words) == 0
    (options, _), _ = execute.call_args
    assert options.monitor_token == token
    assert notes_of(options, tmp_path) == [f"monitor at http://127.0.0.1:PORT/; its token is in {file}"]
    (shown,) = notes_of(replace(options, spark=replace(options.spark, conf={})), tmp_path)
    assert shown == f"monitor at http://127.0.0.1:PORT/?token={quote(token)}"
    server = MonitorServer(Mock(), "127.0.0.1:0", token)
    server.server_close()
    _, _, query = server.url.partition("?")
    assert has_token(token, parse_qs(query), "") and has_token(token, {}, f"Bearer {token}")


def notes_of(options: RunOptions, checkpoint: Path) -> list[str]:
    """Return what a run says about its monitor, with PORT for the port."""
    reporter, topology = Mock(), word_count()
    with ExitStack() as stack:
        start_monitor(options, reporter, topology, compile_topology(topology, shuffle_partitions=2), checkpoint, stack)
    return [re.sub(r"(?<=:)\d+(?=/)", "PORT", call.args[0]) for call in reporter.note.call_args_list]
