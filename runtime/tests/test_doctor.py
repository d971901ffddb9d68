"""`wallaroo explain CODE`, `doctor` and `completion`; what is said of options that are misspelt or not used."""

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.diagnostic.diagnostic import catalogue
from wallaroo_runtime.cli import doctor
from wallaroo_runtime.cli.completion import SHELLS, actions_of
from wallaroo_runtime.cli.explain import meaning
from wallaroo_runtime.cli.main import command_parser, main
from wallaroo_runtime.cli.option import WITHOUT_EFFECT, split, tell_split
from wallaroo_runtime.cli.run_option import OWN, VISIBLE
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.application import unused_addresses
from wallaroo_runtime.spark.machine import check as machine
from wallaroo_runtime.spark.machine import jar
from wallaroo_runtime.topology.load import load

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
USED = frozenset(OWN)


def test_every_code_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for code in catalogue():
        first, *others = meaning(code).splitlines()
        assert first.startswith(f"{code} {catalogue()[code]['name']}: about ")
        assert others[-1].startswith("  fix: "), code
        assert others[-1] != "  fix: the finding has it" or any(line.startswith("  cause: ") for line in others), code
        assert "{" not in "".join(others).replace("func main() {}", ""), code
        assert main(["explain", code, "--json"]) == 0
        assert catalogue()[code].items() <= json.loads(capsys.readouterr().out).items(), code


def test_explain_of_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "w408"]) == 0
    assert capsys.readouterr().out == (
        "W408 no_go: about a worker\n"
        "  go cannot be used; <reason>\n"
        "  fix: install Go 1.24 or newer and put it on PATH\n"
    )
    assert main(["explain", "R714"]) == 0
    assert "  cause: another program uses the port\n" in capsys.readouterr().out
    assert main(["explain", "R999"]) == 2
    assert capsys.readouterr().err.startswith("R608 R999 is no code of the error catalogue\n  fix: did you mean R")


@pytest.mark.parametrize("code", ["C507", "C511", "C528"])
def test_a_code_that_ends_the_run_is_explained_so(code: str) -> None:
    assert meaning(code).splitlines()[0].endswith("user code; the run ends, and goes on when that is corrected")


def test_the_remedy_of_an_unreadable_state_suits_both_languages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "C507"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    kept = "importable under its former name (Go: the names and types of its exported fields)"
    assert f"{kept}, or start over without the states: --fresh" in said


def outcome(what: str) -> doctor.MachineFinding:
    """Return what one look finds; those that start a process are left out."""
    (found,) = [each for look in (doctor.memory, doctor.limits, doctor.ports, doctor.directories, doctor.pyspark)
                for each in look() if each.what == what]  # fmt: skip
    return found


def test_a_client_of_kafka_that_forgets_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "version", lambda name: "2.11.0")
    (look,) = doctor.kafka()
    assert look.finding is not None
    assert "version 2.11.0 may never find brokers again" in look.finding.message
    monkeypatch.setattr(doctor, "version", lambda name: "2.10.1")
    assert doctor.kafka()[0].finding is None


def test_a_machine_without_the_client_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(doctor, "version", version)
    (look,) = doctor.kafka()
    assert (look.state, look.finding and look.finding.message) == (
        "warning",
        "confluent-kafka: it is not installed; programs with Kafka need it",
    )


def test_a_machine_without_pyspark_is_told_as_a_run_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: str) -> None:
        """Give neither a version nor a package."""

    monkeypatch.setattr(doctor, "version", Mock(side_effect=PackageNotFoundError))
    monkeypatch.setattr(machine, "find_spec", none)
    (look,) = doctor.pyspark()
    with pytest.raises(RunError) as caught:
        machine.check_machine()
    assert look.state == "missing" and [look.finding] == caught.value.diagnostics


@pytest.mark.slow
def test_doctor_of_a_machine_that_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = {look["what"]: look["state"] for look in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(found) == [
        *(
            "Java",
            "Java classes",
            "PySpark",
            "Go",
            "confluent-kafka",
            "memory",
            "open files",
            "processes",
            "ports",
            "checkpoints",
            "caches",
        ),
        "temporary files",
    ]
    assert (found["Java"], found["PySpark"], found["Go"], found["ports"]) == ("ok", "ok", "ok", "ok")


def test_doctor_says_what_is_missing_and_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "state").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state" / "of me"))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "missing  R602 Java was not found; there is no `java` on PATH and JAVA_HOME is not set\n" in out
    assert "         fix: install Java 17 and put `java` on PATH, or set JAVA_HOME; " in out
    assert "warning  W408 go cannot be used; it is not on PATH\n" in out
    assert f"missing  R742 checkpoints: {tmp_path / 'state'} cannot be written to\n" in out
    assert "         fix: give another directory with XDG_STATE_HOME\n" in out


@pytest.mark.slow
def test_doctor_looks_for_classes_that_are_not_built(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jar, "NAME", "other.jar")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "missing  R758 the runtime's Java classes cannot be used; they are not built, there is no " in out
    assert "\n         fix: run `make setup` in the checkout" in out


def test_doctor_looks_at_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda number: (256, 4096 if number == resource.RLIMIT_NOFILE else 300))
    assert str(outcome("open files").finding) == (
        "R742 open files: the limit is 256; at least 1024 are good\n  fix: ulimit -n 1024"
    )
    assert str(outcome("processes").finding).endswith("fix: ulimit -u 512, which an administrator has to allow")
    monkeypatch.setattr(doctor, "NEEDED_BYTES", 1 << 60)
    monkeypatch.setattr(machine, "FREE_DISK_BYTES", 1 << 60)
    assert [outcome(what).state for what in ("memory", "caches")] == ["warning", "warning"]

    def refuse(address: object) -> socket.socket:
        raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(socket, "create_server", refuse)
    assert "no server can listen at 127.0.0.1; Cannot assign" in str(outcome("ports").finding)
    assert outcome("ports").state == "missing"


def test_temporary_files_that_have_no_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    finding = machine.temporary_files().finding
    assert finding is not None
    assert finding.message == f"temporary files: TMPDIR is {tmp_path}/nowhere, to which nothing can be written"
    (tmp_path / "nowhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert machine.temporary_files().finding is None


LACKING = """
import resource, subprocess, sys, tempfile
from unittest import mock
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.spark.machine import check

what, folder, topology = sys.argv[1:]
if what in ("noexec", "ro"):
    subprocess.run(["mount", "-t", "tmpfs", "-o", what, "tmpfs", folder], check=True)
    tempfile.tempdir = folder
elif what == "files":
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
with mock.patch.object(check, "check_java"):
    sys.exit(main(["run", topology]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("noexec", "temporary files: {} is mounted noexec; Java loads libraries from there"),
        ("ro", "temporary files: {} cannot be written to"),
        ("files", "open files: the limit is 256; at least 1024 are good"),
    ],
)
def test_a_run_is_refused_on_a_machine_that_lacks_something(tmp_path: Path, what: str, reason: str) -> None:
    namespaces = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--map-root-user"])
    command = [*namespaces, sys.executable, "-c", LACKING, what, str(tmp_path)]
    topology = str(VALID / "word_count.json")
    done = subprocess.run([*command, topology], capture_output=True, text=True, timeout=300, check=False)
    assert f"R742 {reason.format(tmp_path)}\n" in done.stderr
    remedy = "ulimit -n 1024, which an administrator has to allow" if what == "files" else "with TMPDIR"
    assert remedy in done.stderr
    assert done.returncode == 1


def completed(script: Path, *words: str) -> list[str]:
    """Return what bash offers for the last word."""
    asked = " ".join(f"'{word}'" for word in words)
    text = (
        f'source {script}; COMP_WORDS=({asked}); COMP_CWORD={len(words) - 1}; _shtab_wallaroo; echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(
        ["bash", "-c", text], cwd=script.parent, capture_output=True, text=True, timeout=300, check=True
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_bash_completes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "wallaroo.bash"
    script.write_text(capsys.readouterr().out)
    assert completed(script, "wallaroo", "dead") == ["dead-letters"]
    assert completed(script, "wallaroo", "dead-letters", "") == ["ls", "show", "replay", "prune"]
    assert completed(script, "wallaroo", "run", "app.py", "--che") == ["--checkpoint"]
    assert completed(script, "wallaroo", "run", "--engine", "") == ["spark", "memory"]
    assert completed(script, "wallaroo", "run", "--checkpoint", "") == ["wallaroo.bash"]  # the only file
    assert completed(script, "wallaroo", "new", "p") == ["python"]
    assert completed(script, "wallaroo", "--ver") == ["--version"]


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_has_every_command_and_option(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for action in actions_of(command_parser()[0]):
        for name in action.option_strings:
            assert (f" -{'l' if name[:2] == '--' else 's'} {name.lstrip('-')}" if shell == "fish" else name) in text
        assert all(str(name) in text for name in action.choices or ())


KNOWN = {**OWN, **VISIBLE, **WITHOUT_EFFECT}
LONG = sorted(name for name in OWN if len(name) > 8)


@given(st.sampled_from(LONG), st.data())
def test_an_option_with_two_letters_exchanged_is_refused(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(2, len(name) - 2))
    wrong = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    parts = split(["app.py", wrong, "value"], USED)
    if wrong in KNOWN:
        return
    with pytest.raises(RunError) as caught:
        tell_split(parts)
    assert str(caught.value).startswith(f"R608 {wrong} is no option of `wallaroo`\n  fix: did you mean --")
    tell_split(split(["app.py", "--", wrong, "value"], USED))


def test_a_misspelt_option_of_run_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "app.py", "--checkpont", "here"]) == 2
    assert "did you mean --checkpoint? After -- the application" in capsys.readouterr().err


ports = st.integers(0, 65535)


@given(st.lists(ports | st.just("localhost"), max_size=3), ports, ports)
def test_addresses_that_no_source_has_are_named(given_ports: list[int | str], source: int, sink: int) -> None:
    document = json.loads((VALID / "word_count.json").read_bytes())
    (pipeline,) = document["pipelines"]
    pipeline["sources"][0]["port"], pipeline["sinks"][0]["port"] = source, sink
    topology = load(json.dumps(document).encode())
    inputs = ",".join(f"127.0.0.1:{port}" if isinstance(port, int) else port for port in given_ports)
    found = unused_addresses(topology, inputs, f"name@127.0.0.1:{sink}")
    if not given_ports or source in given_ports:
        assert found == []
    else:
        assert str(found[0]) == (
            f"R743 --in has no effect: the program itself sets 127.0.0.1:{source}\n"
            "  fix: let the program take its addresses from its arguments, or leave --in out"
        )
