"""Names: first lines of docstrings name a thing, results have a noun, and a class has a name of its own.

A reader finds a thing by its name, so each rule counts what breaks it, and bounds the count.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from architecture.source import CONNECTORS, JAVA, PYTHON_SDK, RUNTIME, hand_written, parsed, statements

PYTHON = (PYTHON_SDK, CONNECTORS, RUNTIME)
GO = "api/go"
# Of 100 docstrings, fewer may have a clause in the place of a noun; and the product binds `found` this often at most.
CLAUSES_PER_100, MOST_FOUND = 3, 29
# "Return what is counted", "Says who waits", "How far a sink is": a clause where a noun is due. "The names of files
# whose lines fit" has its noun, so `whose` counts only where none is before it.
CLAUSE = re.compile(
    r"\b(?:what|who|whom|whoever|that which|how (?:far|much|many|long))\b"
    r"|(?:^|\b(?:return|yield|say|says|know|knows|of|to)\s)whose\b",
    re.IGNORECASE,
)
FOUND = "found"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
GO_TYPE = re.compile(r"^type ([A-Z]\w*)(?:\[.*?\])? (?!=)", re.MULTILINE)
JAVA_TYPE = re.compile(r"\b(?:class|interface|record|enum)\s+([A-Z]\w*)")
JAVA_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

BOTH_ENDS = "a part of an application: as the SDK declares it, as the document has it, as the process that runs it"
FACADE = "a public name of the SDK, and the declaration or the member of the document that it makes"
# name: how many classes have it, and why it is one name. Names of packages that differ are no reason alone.
SHARED_PYTHON = {
    "Application": (2, "declared by the SDK, and loaded by the runtime: program, document and archive"),
    "Codec": (2, "Goka's public interface, and Wallaroo's pair of functions that it becomes"),
    "Component": (2, BOTH_ENDS),
    "KafkaSink": (2, BOTH_ENDS),
    "Pipeline": (3, FACADE),
    "Sink": (3, BOTH_ENDS),
    "Source": (3, BOTH_ENDS),
    "Stage": (2, "a stage of the plan, and the worker's end of the protocol that runs it"),
    "State": (2, BOTH_ENDS),
    "Step": (2, BOTH_ENDS),
    "Version": (2, "the version of a bucket's state, at both ends of a bucket call"),
    "Window": (2, "the window of the document, and the worker's implementation"),
}
SHARED_GO = {
    "Aggregation": (2, FACADE),
    "Application": (5, "the two APIs, the declaration that both fill in, and the interfaces that take either"),
    "Connector": (2, FACADE),
    "Decoder": (2, "the interface that programs implement, and the decoder of a codec's values"),
    "Encoder": (2, "the interface that programs implement, and the encoder of a codec's values"),
    "Error": (4, "the error of a package, which its callers see as codec.Error: Go's way"),
    "Framing": (2, FACADE),
    "Generator": (2, FACADE),
    "Header": (2, "the header of a frame, and the public one of a record of Kafka"),
    "Kafka": (2, FACADE),
    "Option": (2, "Goka's own name in goka/web/monitor, and the option of a test"),
    "Output": (2, "named outputs in the two APIs"),
    "Record": (2, FACADE),
    "Server": (2, "Goka's own name in goka/web/monitor, and the worker's server"),
    "Sink": (2, FACADE),
    "Source": (2, FACADE),
    "Spark": (2, FACADE),
}
SHARED_JAVA = {
    "JournalSource": (2, "Spark's source over a journal, in either mode"),
    "JournalStream": (2, "Spark's stream over a journal, in either mode"),
    "Kind": (2, "within JournalRow and ShuffleRow, whose kind it is"),
}


def product(root: Path, tops: tuple[str, ...], ending: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of the hand-written files of the product below some folders."""
    for file in hand_written(root, ending):
        if file.startswith(tuple(f"{top}/" for top in tops)) and not file.endswith(("_test.go", ".pb.go")):
            yield file, (root / file).read_text(encoding="utf-8")


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and first line of the docstrings of a module, its classes and functions."""
    for node in statements(text):
        if isinstance(node, DOCUMENTED) and (found := ast.get_docstring(node)):
            yield node.body[0].lineno, found.splitlines()[0]


def clause_violations(root: Path) -> Iterator[str]:
    """Yield first lines with a clause in the place of a noun (`CLAUSE`), when 3 of 100 docstrings have one."""
    total, clauses = 0, []
    for file, text in product(root, PYTHON, ".py"):
        for line, first in docstrings(text):
            total += 1
            if CLAUSE.search(first):
                clauses.append(f"{file}:{line}: {first}")
    if total and len(clauses) * 100 >= CLAUSES_PER_100 * total:
        yield f"{len(clauses)} of {total} docstrings name no thing; under {CLAUSES_PER_100} of 100"
        yield from clauses


def found_violations(root: Path) -> Iterator[str]:
    """Yield where results are named `found`, when there are more than the bound."""
    places = [
        f"{file}:{node.lineno}: name the thing that was found"
        for file, text in product(root, PYTHON, ".py")
        for node in ast.walk(parsed(text))
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and node.id == FOUND
        or isinstance(node, ast.ExceptHandler)
        and node.name == FOUND
    ]
    yield from places if len(places) > MOST_FOUND else ()


def python_classes(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of the classes of a program."""
    yield from ((node.lineno, node.name) for node in statements(text) if isinstance(node, ast.ClassDef))


def go_types(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of the exported types of a file in Go; an alias is another name of a type, not one more."""
    yield from ((text.count("\n", 0, match.start()) + 1, match[1]) for match in GO_TYPE.finditer(text))


def java_types(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of the classes, interfaces, records and enums of a file in Java."""
    code = JAVA_COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    yield from ((code.count("\n", 0, match.start()) + 1, match[1]) for match in JAVA_TYPE.finditer(code))


LANGUAGES = (
    (PYTHON, ".py", python_classes, SHARED_PYTHON),
    ((GO,), ".go", go_types, SHARED_GO),
    ((JAVA,), ".java", java_types, SHARED_JAVA),
)


def class_violations(root: Path) -> Iterator[str]:
    """Yield names that several classes of one language have without a reason, and reasons that no longer hold."""
    for tops, ending, types, shared in LANGUAGES:
        places = defaultdict(list)
        for file, text in product(root, tops, ending):
            for line, name in types(text):
                places[name].append(f"{file}:{line}")
        for name, known in places.items():
            if len(known) > 1 and len(known) != shared.get(name, (1, ""))[0]:
                yield f"{name} is the name of {len(known)} classes: {', '.join(known)}"
        if places:
            yield from (f"{name}: listed as shared, but is not" for name in shared if len(places[name]) < 2)
