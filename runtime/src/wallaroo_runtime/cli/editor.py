"""The files of a new project that editors read: VS Code's, and those that every editor knows."""

import json
from typing import Any

PORT = 5678
DEBUG = "wallaroo run --debug"
PYTHON = "${command:python.interpreterPath}"
EDITORCONFIG = """root = true

[*]
charset = utf-8
end_of_line = lf
insert_final_newline = true
trim_trailing_whitespace = true

[*.py]
indent_style = space
indent_size = 4

[*.go]
indent_style = tab

[*.json]
indent_style = space
indent_size = 2
"""
PYPROJECT = """[tool.pytest.ini_options]
testpaths = ["."]

[tool.pyright]
venvPath = "."
venv = ".venv"
"""
SETTINGS: dict[str, dict[str, Any]] = {
    "python": {
        "python.defaultInterpreterPath": "${workspaceFolder}/.venv/bin/python",
        "python.testing.pytestEnabled": True,
        "python.testing.unittestEnabled": False,
    },
    "go": {"[go]": {"editor.codeActionsOnSave": {"source.organizeImports": "explicit"}, "editor.formatOnSave": True}},
}
EXTENSIONS = {"python": ["ms-python.python", "ms-python.debugpy"], "go": ["golang.go"]}
CONFIGURATIONS: dict[str, list[dict[str, Any]]] = {
    "python": [
        {
            "name": "Python: tests",
            "type": "debugpy",
            "request": "launch",
            "module": "pytest",
            "args": ["-q"],
            "console": "integratedTerminal",
        },
        {
            "name": f"Python: {DEBUG}",
            "type": "debugpy",
            "request": "attach",
            "connect": {"host": "127.0.0.1", "port": PORT},
            "preLaunchTask": DEBUG,
        },
    ],
    "go": [
        {
            "name": "Go: tests",
            "type": "go",
            "request": "launch",
            "mode": "test",
            "program": "${workspaceFolder}",
        },
        {
            "name": f"Go: {DEBUG}",
            "type": "go",
            "request": "attach",
            "mode": "local",
            "processId": "${command:pickGoProcess}",
            "preLaunchTask": DEBUG,
        },
    ],
}
TASKS: dict[str, dict[str, Any]] = {
    "python": {
        "type": "process",
        "command": PYTHON,
        "args": ["-m", "wallaroo_runtime.cli.start", "run", "app.py", "--debug-port", str(PORT)],
    },
    "go": {"type": "process", "command": "wallaroo", "args": ["run", ".", "--debug"]},
}
# What the task prints once a debugger can attach.
READY = {"python": "debugpy listens at", "go": "is process"}


def editor_files(language: str) -> dict[str, str]:
    """Return the files for a project in `python` or `go`, or `mixed`: a program in Python with components in Go.

    Breakpoints stop in the program that is run: the Python one of a mixed project. Its components in Go are tested, or
    attached to, by themselves.

    Example:
        >>> sorted(editor_files("go"))[:3]
        ['.editorconfig', '.vscode/extensions.json', '.vscode/launch.json']
    """
    main = "go" if language == "go" else "python"
    languages = ("python", "go") if language == "mixed" else (main,)
    settings: dict[str, Any] = {}
    for each in languages:
        settings |= SETTINGS[each]
    extensions = [*(name for each in languages for name in EXTENSIONS[each]), "EditorConfig.EditorConfig"]
    task = {"label": DEBUG, **TASKS[main], "isBackground": True, "problemMatcher": _until(READY[main])}
    files = {
        ".vscode/extensions.json": {"recommendations": extensions},
        ".vscode/launch.json": {"version": "0.2.0", "configurations": CONFIGURATIONS[main]},
        ".vscode/settings.json": settings,
        ".vscode/tasks.json": {"version": "2.0.0", "tasks": [task]},
    }
    texts = {name: json.dumps(content, indent=2) + "\n" for name, content in files.items()}
    return {".editorconfig": EDITORCONFIG} | texts | ({"pyproject.toml": PYPROJECT} if main == "python" else {})


def _until(text: str) -> dict[str, Any]:
    """Return the matcher of a task that is ready once it prints a text, and goes on."""
    background = {"activeOnStart": True, "beginsPattern": "^wallaroo$", "endsPattern": text}
    return {"pattern": {"regexp": "^$"}, "background": background}
