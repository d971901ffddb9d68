"""Checks a document against the JSON Schema and describes its errors in words for people."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from wallaroo.diagnostic.diagnostic import Diagnostic, closest, did_you_mean
from wallaroo_runtime.topology.schema import pointer_of, resolved, schema, shown_json

_NOUNS = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "integer": "an integer",
    "boolean": "true or false",
}
_LARGEST_KEY = (1 << 64) - 1


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    # `$` of Python's re also matches before a final newline.
    # Empty texts pass, since another rule reports them.
    if isinstance(instance, str) and instance and not re.fullmatch(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern}")


def _unique_items(validator: Any, wanted: bool, instance: Any, schema: Any) -> Iterator[ValidationError]:
    # The library's own test is quadratic for mixed items. Key values are compared as bytes later (T203).
    if not _is_looked_through(instance, schema) or schema["items"].get("$ref") == "#/$defs/keyValue":
        return
    seen: set[str] = set()
    for number, item in enumerate(instance):
        text = json.dumps(item, default=repr)
        if text in seen:
            yield ValidationError("twice", path=(number,))
        seen.add(text)


def _is_looked_through(instance: Any, schema: Any) -> bool:
    """Say whether to check the items of a value. Another rule reports a value that is no list or is too long."""
    return isinstance(instance, list) and len(instance) <= schema.get("maxItems", len(instance))


def _required(validator: Any, names: list[str], instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        yield from (ValidationError(name) for name in names if name not in instance)


def _items(validator: Any, items: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not _is_looked_through(instance, schema):
        return
    plain = items.get("$ref") == "#/$defs/keyValue"
    for number, item in enumerate(instance):
        # A key list may have a million values; nearly all of them are strings or integers.
        if plain and (type(item) is str or type(item) is int and 0 <= item <= _LARGEST_KEY):
            continue
        yield from validator.descend(item, items, path=number)


@cache
def _validator() -> Any:
    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    rules = {"pattern": _pattern, "required": _required, "uniqueItems": _unique_items, "items": _items}
    return extend(Draft202012Validator, rules, type_checker=checker)(schema())


def check_shape(document: Any, limit: int) -> Iterator[Diagnostic]:
    """Yield a finding (T102) for each place where the document breaks the schema, at most `limit` findings."""
    count = 0
    for error in _validator().iter_errors(document):
        for finding in _findings(error):
            count += 1
            if count > limit:
                return
            yield finding


def _finding(error: ValidationError, reason: str, fix: str, *more: Any) -> Diagnostic:
    return Diagnostic.of("T102", pointer=pointer_of((*error.absolute_path, *more)), reason=reason, fix=fix)


def _findings(error: ValidationError) -> Iterator[Diagnostic]:
    rule: Any = error.validator
    if rule == "oneOf":
        yield from _branch_findings(error)
    elif rule == "additionalProperties":
        yield from _unknown_properties(error)
    elif rule == "required":
        yield from _missing_property(error, error.message)
    elif rule == "anyOf":
        names = [name for branch in error.validator_value for name in branch.get("enum", branch.get("examples"))]
        yield _one_of(error, error.instance, names)
    else:
        reason, fix = _value_reason(error)
        yield _finding(error, reason, fix)


def _described(rule: Mapping[str, Any]) -> str:
    """Return the schema's description of a value, for the middle of a sentence."""
    text = str(resolved(rule).get("description", "")).rstrip(".")
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _expected(rule: Mapping[str, Any]) -> str:
    """Return the schema's description of a value, with an example if it has one."""
    examples = rule.get("examples")
    return f"expected: {_described(rule)}" + (f", e.g. {shown_json(examples[0])}" if examples else "")


def _properties(error: ValidationError) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = error.schema.get("properties", {})
    return properties


def _unknown_properties(error: ValidationError) -> Iterator[Diagnostic]:
    known = _properties(error)
    for name in error.instance:
        if name not in known:
            close = did_you_mean(name, [other for other in known if other not in error.instance])
            fix = f"write {close[15:-1]}" if close else "remove it; known are " + ", ".join(f'"{key}"' for key in known)
            yield _finding(error, f"property {shown_json(name)} is not known{close}", fix, name)


def _missing_property(error: ValidationError, name: str) -> Iterator[Diagnostic]:
    known = _properties(error)
    unknown = [other for other in error.instance if other not in known]
    if any(closest(other, [name]) for other in unknown):
        return  # the property is misspelt, which is another finding
    yield _finding(error, f'property "{name}" is missing', f'add "{name}": {_described(known[name])}')


def _branch_findings(error: ValidationError) -> Iterator[Diagnostic]:
    """Yield the findings of one alternative (`oneOf`) of the schema: the one for the `kind` that the document has."""
    branches: dict[Any, list[ValidationError]] = {}
    for cause in error.context or ():
        branches.setdefault(cause.relative_schema_path[0], []).append(cause)
    kinds = [_kinds(branch) for branch in error.schema["oneOf"]]
    if isinstance(error.instance, dict) and "kind" in error.instance and any(kinds):
        meant = [number for number, names in enumerate(kinds) if error.instance["kind"] in names]
        for cause in branches.get(meant[0], []) if meant else []:
            yield from _findings(cause)
        if not meant:
            names = [name for names in kinds for name in names]
            yield _one_of(error, error.instance["kind"], names, "kind")
        return
    if all(kinds) and isinstance(error.instance, dict):
        wanted = ", ".join(shown_json(name) for names in kinds for name in names)
        yield _finding(error, 'property "kind" is missing', f'add "kind": one of {wanted}')
        return
    if not any(kinds) and isinstance(error.instance, dict):
        for cause in branches.get(len(kinds) - 1, []):
            yield from _findings(cause)
        return
    yield _finding(error, f"{shown_json(error.instance)} is not usable here", _expected(error.schema))


def _kinds(branch: Mapping[str, Any]) -> list[str]:
    kind = branch.get("properties", {}).get("kind", {})
    return list(kind.get("enum", [kind["const"]] if "const" in kind else []))


def _one_of(error: ValidationError, value: Any, names: list[Any], *more: str) -> Diagnostic:
    close = did_you_mean(value, [name for name in names if isinstance(name, str)]) if isinstance(value, str) else ""
    wanted = ", ".join(map(shown_json, names))
    expected = wanted if len(names) == 1 else f"one of {wanted}"
    return _finding(error, f"{shown_json(value)} is not known here{close}", f"write {expected}", *more)


def _value_reason(error: ValidationError) -> tuple[str, str]:
    rule, wanted, value = str(error.validator), error.validator_value, shown_json(error.instance)
    described = _described(error.schema)
    if rule == "type":
        return f"{value} is not {_NOUNS[wanted]}", f"write {_NOUNS[wanted]}: {described}"
    if rule in ("const", "enum"):
        finding = _one_of(error, error.instance, [wanted] if rule == "const" else list(wanted))
        return finding.message, finding.fix
    if rule == "uniqueItems":
        return "the item occurs twice in the list", "list it once"
    size = len(error.instance) if isinstance(error.instance, list | str) else 0
    texts = {
        "minimum": (f"{value} is too small", f"write at least {wanted}"),
        "maximum": (f"{value} is too large", f"write at most {wanted}"),
        "minLength": ("the text is empty", f"write at least {wanted} character"),
        "maxLength": (f"{value} has {size} characters", f"write at most {wanted}"),
        "minItems": ("the list is empty", f"give at least {wanted} item"),
        "maxItems": (f"the list has {size} items", f"give at most {wanted}"),
    }
    return texts.get(rule, (f"{value} is not usable here", _expected(error.schema)))
