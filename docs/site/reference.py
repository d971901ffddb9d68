"""Pages that are written from the sources: error catalogue, topology, commands, Python and Go."""

import argparse
import importlib
import inspect
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RANGES = {
    "T": "Topology: what a program declares",
    "P": "Plan: what cannot be compiled",
    "W": "Workers",
    "C": "User code: the reasons of dead letters",
    "R": "Runs",
    "I": "Internal: faults of the runtime or an SDK",
}
PYTHON = {
    "wallaroo": "wallaroo",
    "testing": "wallaroo.testing",
    "goka": "wallaroo.goka",
    "connector": "wallaroo.connector",
    "experimental": "wallaroo.experimental",
}
GO = {
    "wallarooapi/stream": "api/go/stream",
    "wallarooapi/worker": "api/go/worker",
    "wallarooapi/wallarootest": "api/go/wallarootest",
    "wallarooapi": "api/go",
    "wallarooapi/application": "api/go/application",
    "wallarooapi/goka": "api/go/goka",
    "wallarooapi/otel": "api/go/otel",
}


def go_page(package: str) -> str:
    """Return the address of a Go package's page.

    Example:
        >>> go_page("wallarooapi/stream")
        'reference/go/stream.md'
    """
    return f"reference/go/{package.rpartition('/')[2]}.md"


def catalogue() -> list[dict[str, Any]]:
    """Return the entries of the error catalogue."""
    text = (ROOT / "topology-schema" / "errors.json").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = json.loads(text)["errors"]
    return entries


def errors() -> str:
    """Return the page of the error catalogue: message, cause and remedy of each code."""
    lines = [
        "# Error catalogue",
        "",
        "Every error and warning has a code, the place, what was found there, and a remedy. Words in braces are filled",
        "in; below it are common causes. With `--json` each is an object with the same code. No code is given to",
        "another error later. `wallaroo explain CODE` prints an entry.",
    ]
    last = ""
    for entry in catalogue():
        code = entry["code"]
        if code[0] != last:
            last = code[0]
            lines += ["", f"## {RANGES[last]}"]
        lines += ["", f"### {code} {entry['name'].replace('_', ' ')} {{#{code.lower()}}}", ""]
        lines += [f"> {_text(entry['message'])}", ""]
        lines += [f"- {_text(cause)}" for cause in entry.get("causes", ())]
        lines += ["", f"Remedy: {_text(entry['fix'])}"]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Return text of the catalogue as Markdown shows it."""
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_") if "`" not in text else text


def topology() -> str:
    """Return the page of the topology's schema: each object with its fields."""
    schema = json.loads((ROOT / "topology-schema" / "topology.schema.json").read_text(encoding="utf-8"))
    schema = _described(schema, schema["$defs"])
    lines = [
        "# Topology reference",
        "",
        "The topology is the JSON document that `wallaroo emit APP` prints and `wallaroo run` reads. Its schema is",
        "`topology-schema/topology.schema.json`; what the schema cannot say is in `topology-schema/SPECIFICATION.md`.",
        "",
    ]
    lines += _object("Document", schema, level=2)
    for name, definition in schema["$defs"].items():
        lines += _object(name, definition, level=2)
    return "\n".join(lines) + "\n"


def _described(rule: Any, definitions: dict[str, Any]) -> Any:
    """Return a part of the schema in which a reference has the description and the examples of what it names."""
    if isinstance(rule, list):
        return [_described(item, definitions) for item in rule]
    if not isinstance(rule, dict):
        return rule
    named = definitions[rule["$ref"].rpartition("/")[2]] if "$ref" in rule else {}
    shown = {key: named[key] for key in ("description", "examples") if key in named}
    return shown | {key: _described(value, definitions) for key, value in rule.items()}


def _object(name: str, schema: dict[str, Any], level: int) -> list[str]:
    """Return the section of one object, with those of its kinds."""
    lines = [f"{'#' * level} {name}", "", schema.get("description", ""), ""]
    fields = schema.get("properties", {})
    required = set(schema.get("required", ()))
    if fields:
        lines += ["| field | type | meaning |", "|---|---|---|"]
        for field, rule in fields.items():
            must = "" if field in required else " (optional)"
            lines.append(f"| `{field}`{must} | {_type(rule)} | {_cell(rule)} |")
        lines.append("")
    elif "properties" not in schema:
        lines += [f"Type: {_type(schema)}", ""] if _type(schema) else []
    for number, kind in enumerate([*schema.get("oneOf", ()), *schema.get("anyOf", ())], 1):
        kinds = kind.get("properties", {}).get("kind", {})
        title = kinds.get("const") or " or ".join(kinds.get("enum", ())) or kind.get("title") or f"{name} {number}"
        lines += _object(f"{name}: {title}", kind, level + 1) if kind.get("properties") else []
    return lines


def _type(rule: dict[str, Any]) -> str:
    """Return the type of a field in a few words."""
    if "$ref" in rule:
        name = rule["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in rule:
        return f"`{json.dumps(rule['const'])}`"
    if "enum" in rule:
        return " or ".join(f"`{json.dumps(value)}`" for value in rule["enum"])
    if rule.get("type") == "array":
        return f"array of {_type(rule.get('items', {})) or 'values'}"
    kinds = [_type(kind) for kind in [*rule.get("oneOf", ()), *rule.get("anyOf", ())]]
    return str(rule.get("type", "")) or " or ".join(filter(None, kinds))


def _cell(rule: dict[str, Any]) -> str:
    """Return description and example of a field as a cell of a table."""
    text = str(rule.get("description", "")).replace("|", "\\|").replace("\n", " ")
    examples = [json.dumps(value, ensure_ascii=False) for value in rule.get("examples", ())[:1]]
    shown = [f" Example: `{example}`" for example in examples if len(example) <= 80 and "`" not in example]
    shown += [f" `wallaroo complete` adds `{json.dumps(rule['default'])}`."] if "default" in rule else []
    return text + "".join(shown).replace("|", "\\|")


def commands() -> str:
    """Return the page of the commands, from their own parsers."""
    from wallaroo_runtime.cli.main import command_parser

    lines = [
        "# Commands",
        "",
        "What `wallaroo COMMAND --help` prints. Exit codes: 1 run, 2 usage, 3 topology, 4 worker.",
        "",
    ]
    for name, command in command_parser()[1].items():
        lines += [f"## {name}", "", "```text", *_help(command), "```", ""]
        for sub, inner in below(command):
            lines += [f"### {name} {sub}", "", "```text", *_help(inner), "```", ""]
    return "\n".join(lines) + "\n"


def _help(parser: argparse.ArgumentParser) -> list[str]:
    """Return what `--help` prints, in lines of at most 100 characters."""
    formatter = parser.formatter_class
    parser.formatter_class = lambda prog: formatter(prog, width=100)  # type: ignore[assignment]
    return parser.format_help().rstrip().split("\n")


def below(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the commands of a command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def python(package: str) -> str:
    """Return the page of a package: a directive of mkdocstrings for each public name."""
    module = importlib.import_module(package)
    groups: dict[str, list[str]] = {"Functions and decorators": [], "Classes": [], "Errors": []}
    for name in sorted(module.__all__, key=str.lower):
        value = getattr(module, name)
        if not inspect.isclass(value):
            groups["Functions and decorators"].append(name)
        else:
            groups["Errors" if issubclass(value, Exception) else "Classes"].append(name)
    lines = [f"# `{package}`", "", inspect.getdoc(module) or "", ""]
    for title, names in groups.items():
        lines += [f"## {title}", ""] if names else []
        for name in names:
            lines += [f"::: {package}.{name}", ""]
    return "\n".join(lines) + "\n"


def go() -> dict[str, str]:
    """Return the page of each Go package, by its address."""
    where = [f"{package}={ROOT / directory}" for package, directory in GO.items()]
    command = ["go", "run", str(ROOT / "docs" / "site" / "godoc.go"), *where]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        msg = f"godoc.go failed: {done.stderr}"
        raise RuntimeError(msg)
    return {go_page(package): text for package, text in json.loads(done.stdout).items()}


PAGES: dict[str, Callable[[], str]] = {
    "reference/errors.md": errors,
    "reference/topology.md": topology,
    "reference/commands.md": commands,
    **{f"reference/python/{name}.md": lambda package=package: python(package) for name, package in PYTHON.items()},  # type: ignore[misc]
}
NAMES = (*PAGES, *map(go_page, GO))
