"""The contract files keep the rules that they set for those who read them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FileDescriptor
from jsonschema import Draft202012Validator

from wallaroo.message.handshake import CAPABILITIES
from wallaroo.worker._proto import worker_pb2
from wallaroo_runtime.cli.main import command_parser
from wallaroo_runtime.service._proto import service_pb2

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "topology-schema" / "topology.schema.json").read_text(encoding="utf-8"))


def rules(value: Any, place: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each part of the schema that has examples, with its place."""
    if isinstance(value, dict):
        if isinstance(value.get("examples"), list):
            yield place, value
        inner = ((name, item) for name, item in value.items() if name != "examples")
    elif isinstance(value, list):
        inner = ((str(number), item) for number, item in enumerate(value))
    else:
        return
    for name, item in inner:
        yield from rules(item, f"{place}/{name}")


@pytest.mark.parametrize("file", [worker_pb2.DESCRIPTOR, service_pb2.DESCRIPTOR], ids=lambda file: str(file.name))
def test_enum_values_have_their_enums_prefix_and_zero_is_unspecified(file: FileDescriptor) -> None:
    for enum in file.enum_types_by_name.values():
        prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper() + "_"
        names = [value.name for value in enum.values]
        assert [name for name in names if not name.startswith(prefix)] == []
        assert enum.values_by_number[0].name == f"{prefix}UNSPECIFIED"


def test_examples_of_the_schema_are_valid() -> None:
    for place, rule in rules(SCHEMA):
        validator = Draft202012Validator({**rule, "$defs": SCHEMA["$defs"]})
        wrong = [error.message[:200] for example in rule["examples"] for error in validator.iter_errors(example)]
        assert wrong == [], place


def test_packages_of_go_that_start_goroutines_are_tested_with_the_race_detector() -> None:
    sdk = ROOT / "api" / "go"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (racing,) = re.findall(r"^RACING := (.*)$", makefile, re.MULTILINE)
    (nested,) = re.findall(r"^NESTED := (.*)$", makefile, re.MULTILINE)
    starts = re.compile(r"^\s*go [\w.]+\(", re.MULTILINE)
    files = [file.relative_to(sdk) for file in sdk.rglob("*.go") if starts.search(file.read_text(encoding="utf-8"))]
    own = {str(file.parent) for file in files if f"api/go/{file.parts[0]}" not in nested.split()}
    assert own == set(racing.split("|"))


def test_both_sdks_have_the_capabilities_of_the_specification() -> None:
    text = (ROOT / "topology-schema" / "SPECIFICATION.md").read_text(encoding="utf-8")
    table = text.partition("| capability | the worker has |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    handshake = (ROOT / "api" / "go" / "internal" / "server" / "handshake.go").read_text(encoding="utf-8")
    (listed,) = re.findall(r"capabilities = \[\]string{(.*)}", handshake)
    assert named == list(CAPABILITIES) == re.findall(r'"(\w+)"', listed)


def test_commands_that_the_go_sdk_starts_have_the_options_that_it_gives() -> None:
    parsers = command_parser()[1]
    started: dict[str, set[str]] = {}
    starts = re.compile(r'(?:append\(command|WithRunArguments\()(?:, "(\w+)")?(.*"--.*)\)')
    files = [file for file in (ROOT / "api" / "go" / "goka").glob("*.go") if not file.name.endswith("_test.go")]
    for command, arguments in starts.findall("".join(file.read_text(encoding="utf-8") for file in files)):
        started.setdefault(command or "run", set()).update(re.findall(r'"(--[\w-]+)"', arguments))
    assert started == {
        "run": {"--attach", "--checkpoint", "--continue-goka"},
        "visit": {"--metadata-file", "--wait", "--json"},
    }
    for command, options in started.items():
        assert options <= {*parsers[command].options()}
