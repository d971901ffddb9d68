"""The front-end as a child process: results, findings, what the program prints."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from wallaroo.diagnostic.diagnostic import Diagnostic

CASES = Path(__file__).resolve().parents[3] / "tests" / "cases"
ADDRESSES = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"]
pytestmark = pytest.mark.slow

GOOD = """
import sys
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs

@wallaroo.encoder
def encode(data):
    return data

def application_setup(args):
    print("setup", args)
    ab = wallaroo.ApplicationBuilder("app")
    ab.new_pipeline("one", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode))
    ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode))
    return ab.build()

other_setup = application_setup
"""


def emit(
    directory: Path, app: str, *args: str, module: str = "wallaroo.emit", **environment: str
) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    file = directory / "result.json"
    variables = {**os.environ, "WALLAROO_EMIT_FILE": str(file), "WALLAROO_ARGS": json.dumps(args)}
    done = subprocess.run(
        [sys.executable, "-m", module, app], cwd=directory, env=variables | environment,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return (json.loads(file.read_text()) if file.exists() else {}), done


def findings(directory: Path, text: str, app: str = "app.py") -> list[Diagnostic]:
    (directory / "app.py").write_text(text)
    result, done = emit(directory, app)
    assert done.returncode == 0, done.stderr
    return [Diagnostic.from_json(entry) for entry in result["diagnostics"]]


@pytest.mark.parametrize("module", ["wallaroo.emit", "wallaroo.worker"])
def test_a_program_may_close_its_output(tmp_path: Path, module: str) -> None:
    (tmp_path / "app.py").write_text(GOOD.replace('print("setup", args)', "sys.stdout.close()"))
    result, done = emit(tmp_path, "app.py", "--in", "x:1", module=module, WALLAROO_MODE="emit")
    assert (result["topology"]["name"], done.returncode, done.stderr) == ("app", 0, "")


@pytest.mark.parametrize("app", ["app.py", "app", "app.py:other_setup", "app:other_setup"])
def test_a_file_or_a_module_with_or_without_its_function(tmp_path: Path, app: str) -> None:
    (tmp_path / "app.py").write_text(GOOD)
    result, done = emit(tmp_path, app, "--in", "x:1")
    assert result["topology"]["name"] == "app"
    assert done.stdout == "setup ['wallaroo', '--in', 'x:1']\n"
    worker = result["topology"]["workers"][0]
    assert worker["args"] == ["--in", "x:1"]
    assert worker["components"][0] == {"path": "0/sources/0", "symbol": "decode", "file": "app.py", "line": 6}


def test_a_module_in_a_package(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "orders.py").write_text(GOOD)
    result, _ = emit(tmp_path, "shop.orders")
    assert result["topology"]["workers"][0]["components"][0]["file"] == "shop/orders.py"


def test_a_worker_in_mode_emit_does_the_same(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(GOOD)
    result, done = emit(tmp_path, "app.py", module="wallaroo.worker", WALLAROO_MODE="emit")
    assert (result["topology"]["name"], done.returncode) == ("app", 0)


def test_by_hand_the_document_alone_is_on_stdout(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(GOOD)
    done = subprocess.run(
        [sys.executable, "-m", "wallaroo.emit", "app.py", "x"], cwd=tmp_path, capture_output=True, text=True,
        timeout=120, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["workers"][0]["args"] == ["x"]
    assert "setup ['wallaroo', 'x']" in done.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"WALLAROO_MODE": "emit", "WALLAROO_EMIT_FILE": ""},
        {"WALLAROO_MODE": "worker", "WALLAROO_WORKER_DIR": ""},  # it would be the current directory
    ],
)
def test_a_worker_started_by_hand_says_so(variables: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wallaroo.worker", "app.py"], cwd=tmp_path, capture_output=True, text=True,
        timeout=120, check=False, env={**os.environ, **variables},
    )  # fmt: skip
    assert [*tmp_path.iterdir()] == []
    assert done.returncode == 2
    assert done.stderr == (
        "W412 this program is a worker; it is started by the runtime\n  fix: run it with `wallaroo run app.py`\n"
    )


def test_no_setup(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "x = 1\n")
    assert str(found) == (
        "T201 app gives no application; it has no application_setup\n  at app.py\n"
        "  fix: define `application_setup(args)`; it returns the application, e.g. that of `wallaroo.build_application`"
    )
    (found,) = findings(tmp_path, "x = 1\n", "app.py:start")
    assert found.message == "app gives no application; it has no start"


@pytest.mark.parametrize(
    ("parameters", "count"),
    [
        ("", "0 parameters; expected 1"),
        ("args, more", "2 parameters; expected 1"),
        ("*, args", "1 parameter, but args by name alone; expected 1, by their places"),
    ],
)
def test_a_setup_that_cannot_be_called(tmp_path: Path, parameters: str, count: str) -> None:
    (found,) = findings(tmp_path, f"\ndef application_setup({parameters}):\n    pass\n")
    assert str(found) == (
        f'T202 setup "application_setup": application_setup takes {count}\n  at app.py:2\n'
        "  fix: declare it as `def application_setup(args)`"
    )


def test_setup_that_raises_shows_the_users_frames(tmp_path: Path) -> None:
    (found,) = findings(
        tmp_path, "def application_setup(args):\n    return deeper()\n\ndef deeper():\n    return {}['k']\n"
    )
    assert (found.code, found.message) == ("T217", "application_setup failed; KeyError: 'k'")
    assert (found.file, found.line) == ("app.py", 5)
    assert "in deeper" in found.traceback
    assert "wallaroo" not in found.traceback


@pytest.mark.parametrize(
    "call", ["wallaroo.TCPSourceConfig('127.0.0.1', 7010)", "json.loads('{')", "[json.loads(text) for text in '{']"]
)
def test_setup_that_a_library_refuses_is_told_at_the_users_line(tmp_path: Path, call: str) -> None:
    (found,) = findings(tmp_path, f"import json\nimport wallaroo\n\ndef application_setup(args):\n    {call}\n")
    assert (found.code, found.file, found.line) == ("T217", "app.py", 5)


LAMBDA = """
import wallaroo

def application_setup(args):
    lines = wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", 7010, read)).key_by(lambda line: line)
    return wallaroo.build_application("app", lines.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, write)))

@wallaroo.line_decoder
def read(line):
    return line

@wallaroo.line_encoder
def write(line):
    return line
"""


def test_a_lambda_is_told_at_its_line_not_at_the_next_function(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, LAMBDA)
    assert (found.code, found.file, found.line) == ("T207", "app.py", 5)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("splitt", "NameError: name 'splitt' is not defined; did you mean split?"),
        ("lenn", "NameError: name 'lenn' is not defined; did you mean len?"),
        ("nothing_like_it", "NameError: name 'nothing_like_it' is not defined"),
        ("wallaroo.secnods(1)", "AttributeError: module 'wallaroo' has no attribute 'secnods'; did you mean seconds?"),
        ("open('nowhere')", "FileNotFoundError: [Errno 2] No such file or directory: 'nowhere'"),
    ],
)
def test_a_misspelled_name_is_guessed(tmp_path: Path, text: str, error: str) -> None:
    program = "import wallaroo\ndef split(line): pass\n"
    (found,) = findings(tmp_path, f"{program}def application_setup(args):\n    return {text}\n")
    assert found.message == f"application_setup failed; {error}"
    (found,) = findings(tmp_path, f"{program}{text}\n")
    assert (found.code, found.message) == ("T217", f"the import of app failed; {error}")


def test_setup_that_exits(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "import sys\ndef application_setup(args):\n    sys.exit('no')\n")
    assert found.message == "application_setup failed; SystemExit: no"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("import not_there\n", "the import of app failed; ModuleNotFoundError: No module named 'not_there'", 1),
        ("\ndef f(:\n", "the import of app failed; SyntaxError: invalid syntax (app.py, line 2)", 2),
        (
            "from . import other\n",
            "the import of app failed; ImportError: attempted relative import with no known parent package; a file is "
            "in no package: name it as a module, PACKAGE.MODULE",
            1,
        ),
    ],
)
def test_import_that_fails(tmp_path: Path, text: str, message: str, line: int) -> None:
    (found,) = findings(tmp_path, text)
    assert (found.code, found.message, found.file, found.line) == ("T217", message, "app.py", line)
    assert "importlib" not in found.traceback


def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "", "nowhere")
    assert found.message == "the import of nowhere failed; ModuleNotFoundError: No module named 'nowhere'"


def test_a_file_named_like_a_loaded_module(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(GOOD)
    result, _ = emit(tmp_path, str(tmp_path / "json.py"), PYTHONSAFEPATH="1")
    assert "a module of that name is loaded already" in result["diagnostics"][0]["message"]


@pytest.mark.parametrize(
    ("value", "shown"), [("None", "None"), ("wallaroo.ApplicationBuilder('x')", "ApplicationBuilder('x')")]
)
def test_setup_that_returns_something_else(tmp_path: Path, value: str, shown: str) -> None:
    (found,) = findings(tmp_path, f"import wallaroo\n\ndef application_setup(args):\n    return {value}\n")
    assert (found.code, found.line) == ("T201", 3)
    assert found.message == f"application_setup gives no application; it returned {shown}"


def test_all_faults_of_a_declaration(tmp_path: Path) -> None:
    text = GOOD.replace('"7002"', '"x"').replace('"one"', '""').replace('"app"', '" a\\n"')
    assert [found.code for found in findings(tmp_path, text)] == ["T210", "T210", "T211"]


@pytest.mark.parametrize("other", ["wallaroo.py", "wallaroo/__init__.py"])
def test_another_wallaroo_beside_the_program(tmp_path: Path, other: str) -> None:
    program = tmp_path / "program"
    (program / other).parent.mkdir(parents=True)
    (program / other).write_text("")
    (program / "app.py").write_text(GOOD)
    result, _ = emit(tmp_path, "program/app.py")
    (found,) = result["diagnostics"]
    assert found["code"] == "T221"
    assert found["message"] == f"`import wallaroo` finds {program / other}, not this SDK"


def test_a_bare_folder_called_wallaroo_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "wallaroo").mkdir()
    (tmp_path / "app.py").write_text(GOOD)
    assert emit(tmp_path, "app.py")[0]["topology"]["name"] == "app"


def test_warnings_are_shown_once_and_are_no_errors(tmp_path: Path) -> None:
    text = GOOD + "\nimport warnings\nfor _ in range(3):\n    warnings.warn('old', DeprecationWarning)\n"
    (tmp_path / "app.py").write_text(text)
    result, done = emit(tmp_path, "app.py", PYTHONWARNINGS="error")
    assert "topology" in result
    assert done.stderr.count("DeprecationWarning: old") == 1


def test_warnings_of_the_compiler_are_shown_once(tmp_path: Path) -> None:
    # As Wallaroo's word count has it; a class of the same file is looked up in the source.
    state = 'class State:\n    text = "[\\]"\n'
    step = '@wallaroo.state_computation("s")\ndef s(data, state):\n    return data, True\n'
    text = GOOD.replace("    ab.to_sink", '    ab.to_stateful(s, State, "state")\n    ab.to_sink') + state + step
    (tmp_path / "app.py").write_text(text)
    result, done = emit(tmp_path, "app.py")
    assert "topology" in result
    assert done.stderr.count("invalid escape sequence") == 1, done.stderr


def test_one_half_of_a_serializer(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, GOOD + "\ndef serialize(value):\n    return b''\n")
    assert found.message == "module app has no method deserialize"


def test_the_code_hash_follows_the_programs_files(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(GOOD + "\nimport part\n")
    hashes = set()
    for text in ("x = 1\n", "x = 2\n", "x = 1\n"):
        (tmp_path / "part.py").write_text(text)
        hashes.add(emit(tmp_path, "app.py")[0]["topology"]["workers"][0]["code_hash"])
    assert len(hashes) == 2


def test_both_generations_of_the_word_count_are_one_document(tmp_path: Path) -> None:
    documents = []
    for name in ("app.py", "app_classes.py"):
        result, _ = emit(tmp_path, str(CASES / "word_count" / name), *ADDRESSES)
        del result["topology"]["workers"]
        documents.append(result["topology"])
    assert documents[0] == documents[1]
    assert list(documents[0]["pipelines"][0]["steps"][1]) == [
        "path", "name", "kind", "inputs", "state", "codec", "worker"
    ]  # fmt: skip


@pytest.mark.parametrize("case", ["word_count", "reverse", "celsius", "alphabet"])
def test_cases_follow_the_schema(tmp_path: Path, case: str) -> None:
    schema = json.loads((CASES.parents[1] / "topology-schema" / "topology.schema.json").read_text())
    result, _ = emit(tmp_path, str(CASES / case / "app.py"), *ADDRESSES)
    jsonschema.Draft202012Validator(schema).validate(result["topology"])
