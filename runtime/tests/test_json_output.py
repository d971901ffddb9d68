"""`--json` of commands that print data: objects alone on stdout, one a line, each with a time."""

import json
from pathlib import Path

import pytest

from support.run import CASES
from support.small_checkpoint import open_checkpoint
from wallaroo_runtime.cli.main import main

TOPOLOGY = CASES.parents[1] / "topology-schema" / "vectors" / "topologies" / "valid" / "word_count.json"
# What they must have, besides a time; `*`: there may be nothing to print.
COMMANDS = {
    "validate TOPOLOGY": "interface_hash",
    "explain TOPOLOGY": "stages",
    "explain R615": "message",
    "graph TOPOLOGY": "text",
    "diff TOPOLOGY TOPOLOGY": "*",
    "status CHECKPOINT": "state",
    "ps": "*",
    "dead-letters ls CHECKPOINT": "*",
    "doctor": "what",
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_lines_are_objects_with_a_time(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    checkpoint = tmp_path / "state" / "wallaroo" / "word-count"
    checkpoint.parent.mkdir(parents=True)
    open_checkpoint(checkpoint)
    places = {"TOPOLOGY": str(TOPOLOGY), "CHECKPOINT": str(checkpoint)}
    main([*(places.get(word, word) for word in command.split()), "--json"])
    lines = capsys.readouterr().out.splitlines()
    expected = COMMANDS[command]
    assert lines or expected == "*"
    for line in lines:
        found = json.loads(line)
        assert "time" in found
        assert expected in found or expected == "*"
