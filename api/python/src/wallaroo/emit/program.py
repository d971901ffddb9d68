"""Loads a program and runs its setup. A program is a file or a module, perhaps with `:function`."""

import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn

from wallaroo.check.object_state import ObjectStep
from wallaroo.component.application import Application, Step
from wallaroo.component.signature import call_finding
from wallaroo.declare.library import Library
from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, shown
from wallaroo.diagnostic.location import declared_at, hint_of, one_line, raised_at, relative, user_traceback
from wallaroo.emit.topology import library_document, topology
from wallaroo.endpoint.config import given_arguments
from wallaroo.message.serialization import Serializer, deserialize, serialize

SETUP = "application_setup"
PROGRAM_NAME = "wallaroo"
_PROGRAMS: dict[str, ModuleType] = {}  # modules that `load` has imported, by name; a program replaces one of its name
_SDK = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


@dataclass(slots=True)
class LoadedProgram:
    """A program whose setup has run.

    Attributes:
        application: The application that the setup returned.
        directory: The directory that contains the program's modules.
        document: The topology document. For a library it has only the worker, and the offers as `components`.
    """

    application: Application
    directory: str
    document: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the result of `python -m wallaroo.emit`: the topology, or the library document, as JSON."""
        if self.application.offers:
            (worker,) = self.document["workers"]
            return {"library": {"worker": worker, "components": self.document["components"]}}
        programs = self.application.programs()
        return {"topology": self.document} | ({"programs": programs} if programs else {})


def load(app: str, args: Sequence[str]) -> LoadedProgram:
    """Import a program under its own module name and run its setup.

    Args:
        app: A file (`word_count.py`), a module (`shop.orders`), or either with `:function`.
        args: The application's arguments. The setup gets a program name before them.

    Raises:
        DiagnosticError: T201 if there is no valid setup, T202 if it does not take its argument, T217 if the import or
            the setup fails, T221 if another `wallaroo` would be imported; or all faults of the declaration.
    """
    target, function = split_app(app)
    module, directory = _import_file(target) if is_file(target) else _import_module(target)
    setup = getattr(module, function, None)
    if not callable(setup):
        file = os.path.abspath(str(getattr(module, "__file__", "") or ""))
        fix = f"define `{function}(args)`; it returns the application, e.g. that of `wallaroo.build_application`"
        reason = f"it has no {function}"
        raise DiagnosticError(Diagnostic.of("T201", file=_shown(file), program=module.__name__, reason=reason, fix=fix))
    return _program(setup, function, module, directory, app, args)


def load_setup(setup: Callable[..., Any], args: Sequence[str]) -> LoadedProgram:
    """Run a setup function of a module that is loaded already.

    Args:
        setup: The function.
        args: The application's arguments. The setup gets a program name before them.

    Raises:
        DiagnosticError: T201, T202 or T217, as for `load`; or all faults of the declaration.
    """
    name = getattr(setup, "__name__", SETUP)
    module = sys.modules[setup.__module__]
    directory = os.path.dirname(os.path.abspath(getattr(module, "__file__", None) or "."))
    return _program(setup, name, module, directory, f"{module.__name__}:{name}", args)


def _program(
    setup: Callable[..., Any], function: str, module: ModuleType, directory: str, app: str, args: Sequence[str]
) -> LoadedProgram:
    result = _set_up(setup, function, [PROGRAM_NAME, *args])
    application = result if isinstance(result, Application) else result.application()
    application.serializer = _serializer(module)
    if application.serializer.is_custom:
        _check_objects(application)
    if isinstance(result, Library):
        return LoadedProgram(application, directory, library_document(result, directory, app, args))
    return LoadedProgram(application, directory, topology(application, directory, app, args))


def split_app(app: str) -> tuple[str, str]:
    """Return the file or module, and the name of the setup function.

    Example:
        >>> split_app("shop.py:orders"), split_app("shop")
        (('shop.py', 'orders'), ('shop', 'application_setup'))
    """
    target, colon, function = app.rpartition(":")
    if colon and target and function.isidentifier() and not os.path.exists(app):
        return target, function
    return app, SETUP


def is_file(target: str) -> bool:
    """Return whether a target names a file rather than a module."""
    return target.endswith(".py") or os.sep in target


def other_wallaroo(directories: Iterable[str]) -> str:
    """Return the first package or module `wallaroo` in these directories that is not this SDK, or an empty text."""
    for directory in directories:
        spec = importlib.machinery.PathFinder.find_spec("wallaroo", [directory or os.getcwd()])
        # A directory of this name without `__init__.py` does not hide the SDK, which is later on the path.
        if spec is not None and spec.origin and os.path.dirname(os.path.realpath(spec.origin)) != _SDK:
            return spec.origin
    return ""


def _import_file(target: str) -> tuple[ModuleType, str]:
    file = os.path.abspath(target)
    directory, base = os.path.split(file)
    name = re.sub(r"\.py\Z", "", base)
    _refuse_other(directory)
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == file:
        return loaded, directory
    if loaded is not None and loaded is not _PROGRAMS.get(name):
        reason = f"a module of that name is loaded already ({getattr(loaded, '__file__', 'built in')}); rename the file"
        raise DiagnosticError(Diagnostic.of("T217", file=_shown(file), what=f"the import of {name}", error=reason))
    if directory in sys.path:
        sys.path.remove(directory)
    sys.path.insert(0, directory)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not os.path.isfile(file):
        what, reason = f"the import of {name}", "there is no such file"
        raise DiagnosticError(Diagnostic.of("T217", file=_shown(file), what=what, error=reason))
    module = importlib.util.module_from_spec(spec)
    # The module is registered under its own name, so that pickles of its classes can be read after a restart.
    sys.modules[name] = _PROGRAMS[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as err:
        del sys.modules[name]
        _import_failed(name, file, err)
    return module, directory


def _import_module(name: str) -> tuple[ModuleType, str]:
    _refuse_other(os.getcwd())
    is_here = importlib.machinery.PathFinder.find_spec(name.partition(".")[0], [os.getcwd()]) is not None
    if is_here and os.getcwd() not in map(os.path.abspath, sys.path):
        sys.path.insert(0, os.getcwd())  # only if the program is there, since other users may write to the directory
    try:
        module = importlib.import_module(name)
    except BaseException as err:
        _import_failed(name, "", err)
    file = os.path.abspath(module.__file__) if module.__file__ else os.getcwd()
    depth = name.count(".") + (1 if os.path.basename(file) == "__init__.py" else 0)
    directory = os.path.dirname(file)
    for _ in range(depth):
        directory = os.path.dirname(directory)
    return module, directory


def _refuse_other(directory: str) -> None:
    file = other_wallaroo([directory])
    if file:
        raise DiagnosticError(Diagnostic.of("T221", file=_shown(file), found=file))


def _import_failed(name: str, file: str, error: BaseException) -> NoReturn:
    if isinstance(error, DiagnosticError | KeyboardInterrupt):
        raise error
    at = raised_at(error)
    finding = Diagnostic.of(
        "T217", file=_shown(at.file or file), line=at.line, traceback=user_traceback(error),
        what=f"the import of {name}", error=one_line(error) + hint_of(error),
    )  # fmt: skip
    raise DiagnosticError(finding) from error


def _set_up(setup: Any, function: str, args: list[str]) -> Application | Library:
    if wrong := call_finding("setup", function, setup, ("args",)):
        raise DiagnosticError(wrong)
    try:
        with given_arguments(args):
            result = setup(args)
    except (DiagnosticError, KeyboardInterrupt):
        raise
    except BaseException as err:
        finding = Diagnostic.of(
            "T217", **raised_at(err).shown()._asdict(), traceback=user_traceback(err), what=function,
            error=one_line(err) + hint_of(err),
        )  # fmt: skip
        raise DiagnosticError(finding) from err
    if isinstance(result, (Application, Library)):
        return result
    at = declared_at(setup).shown()
    fix = f"return what `wallaroo.build_application` or `ApplicationBuilder.build()` gives from `{function}`"
    reason = f"it returned {shown(result)}"
    raise DiagnosticError(Diagnostic.of("T201", **at._asdict(), program=function, reason=reason, fix=fix))


def _serializer(module: ModuleType) -> Serializer:
    dump, load_ = getattr(module, "serialize", serialize), getattr(module, "deserialize", deserialize)
    if dump is serialize and load_ is deserialize:
        return Serializer()
    for name, function, default in (("serialize", dump, serialize), ("deserialize", load_, deserialize)):
        if function is default or not callable(function):
            finding = Diagnostic.of(
                "T223", file=_shown(os.path.abspath(str(module.__file__))), what="module",
                type=module.__name__, method=name, signature=f"`def {name}(...)` next to its counterpart",
            )  # fmt: skip
            raise DiagnosticError(finding)
        if wrong := call_finding("module", name, function, ("value",)):
            raise DiagnosticError(wrong)
    return Serializer(dump, load_, True)


def _check_objects(application: Application) -> None:
    """Refuse steps whose object is the state, if the module has its own `serialize`, which may not know the object."""
    steps = [(step, step.run) for step in application.nodes() if isinstance(step, Step)]
    findings = [
        Diagnostic.of(
            "T234", pointer="/pipelines/" + step.path, **step.location.shown()._asdict(), step=step.name, what="object",
            where=run.where, reason="the module's own serialize does not know",
        )
        for step, run in steps if isinstance(run, ObjectStep)
    ]  # fmt: skip
    if findings:
        raise DiagnosticError(findings)


def _shown(file: str) -> str:
    return relative(file, os.getcwd()) if file else ""
