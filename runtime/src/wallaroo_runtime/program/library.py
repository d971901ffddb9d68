"""Finds libraries, i.e. programs with components for other programs. Checks the components, and adds the workers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, did_you_mean
from wallaroo_runtime.errors import TOPOLOGY, RunError
from wallaroo_runtime.program.app import App, AppKind, resolve

Json = Mapping[str, Any]
PROGRAMS = (AppKind.PYTHON_FILE, AppKind.PYTHON_MODULE, AppKind.GO_DIRECTORY, AppKind.BINARY)


def library_alone(app: str) -> Diagnostic:
    """Return the finding that a program is no application but a library."""
    reason, fix = "it is a library of components", "run the program that names its components"
    return Diagnostic.of("T201", program=app, reason=reason, fix=fix)


def find_library(worker: str, home: Path, target: str) -> App:
    """Return the library that another program names for a worker.

    Args:
        worker: Name of the worker.
        home: Directory of the program that names the library; paths are relative to this directory.
        target: A Python file or module, a Go package directory, or a worker binary.

    Raises:
        RunError: R609 if there is no such program.
    """
    file, colon, function = target.partition(":")
    path = home / file
    app = resolve(f"{path}{colon}{function}" if path.exists() else target)
    if app.kind not in PROGRAMS:
        reason = f'worker "{worker}" needs a program; this is a {app.kind.value}'
        raise RunError.of("R609", TOPOLOGY, app=target, reason=reason)
    return app


def join_libraries(document: dict[str, Any], results: Mapping[str, tuple[str, Json]]) -> None:
    """Check that libraries have the components that a program names, and add their workers to its document.

    Args:
        document: Document of the program. The call changes it.
        results: Path of each library and its document of mode `emit`, by name of the worker.

    Raises:
        RunError: T259 or T260 for each component that does not fit its step.
    """
    findings = []
    steps = [step for pipeline in document["pipelines"] for step in pipeline["steps"]]
    codecs = {part["path"]: part["codec"] for pipeline in document["pipelines"] for part in pipeline["sources"]}
    codecs |= {step["path"]: step["codec"] for step in steps}
    for name, (path, result) in results.items():
        if "library" not in result:
            findings.append(
                Diagnostic.of(
                    "T260",
                    worker=name,
                    app=path,
                    what="declares an application of its own",
                    expected="components for other programs",
                    fix="return a library",
                )
            )
            continue
        mine = [step for step in steps if step["worker"] == name and step["kind"] != "output"]
        known = {component["name"]: component for component in result["library"]["components"]}
        for step in mine:
            outputs = (each for each in steps if each["kind"] == "output" and step["path"] in each["inputs"])
            read = {each["name"]: each["codec"] for each in outputs}
            findings.extend(_findings(step, name, path, known, codecs))
            findings.extend(_output_findings(step, name, path, known.get(step["component"]), read=read))
        document["workers"].append(_entry(result["library"], name, mine))
    if findings:
        raise RunError(findings, TOPOLOGY)


def _findings(step: Json, worker: str, path: str, known: Mapping[str, Json], codecs: Json) -> Iterator[Diagnostic]:
    pipeline, _, number = step["path"].split("/")
    pointer = f"/pipelines/{pipeline}/steps/{number}"
    component = known.get(step["component"])
    if component is None:
        yield Diagnostic.of(
            "T259",
            pointer=pointer,
            component=step["component"],
            worker=worker,
            app=path,
            hint=did_you_mean(step["component"], known),
            known=", ".join(f'"{name}"' for name in sorted(known)) or "none",
        )
        return
    inputs = {codecs[source] for source in step["inputs"]}
    wanted = {"kind": {step["kind"]}, "output": {step["codec"]}, "input": inputs}
    for what, values in wanted.items():
        if values != {component[what]}:
            expected_values = " and ".join(f'"{value}"' for value in sorted(values))
            yield Diagnostic.of(
                "T260", pointer=pointer, worker=worker, app=path,
                what=f'has component "{step["component"]}" with {what} "{component[what]}"',
                expected=f"{what} {expected_values}", fix="declare the same in both programs",
            )  # fmt: skip


def _output_findings(
    step: Json, worker: str, path: str, component: Json | None, *, read: Mapping[str, str]
) -> Iterator[Diagnostic]:
    offered = {each["name"]: each["codec"] for each in component.get("outputs", ())} if component else read
    if offered != read:
        pipeline, _, number = step["path"].split("/")
        yield Diagnostic.of(
            "T260", pointer=f"/pipelines/{pipeline}/steps/{number}", worker=worker, app=path,
            what=f'has component "{step["component"]}" with {_outputs_text(offered)}',
            expected=_outputs_text(read), fix="declare the same in both programs",
        )  # fmt: skip


def _outputs_text(outputs: Mapping[str, str]) -> str:
    names = ", ".join(f'"{name}" in codec "{codec}"' for name, codec in sorted(outputs.items()))
    return f"the outputs {names}" if names else "no outputs"


def _entry(library: Json, name: str, steps: list[Any]) -> dict[str, Any]:
    """Return the entry for the worker of a library in a program's document. Its components have the paths of steps."""
    known = {component["name"]: component for component in library["components"]}
    components = []
    for step in steps:
        component = known.get(step["component"], {})
        parts = {part: component[part] for part in ("symbol", "file", "line", "shape") if part in component}
        components.append({"path": step["path"]} | parts)
    return {**library["worker"], "name": name, "components": components}
