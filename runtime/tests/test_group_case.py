"""Groups in memory from the command line: cases of records, and records that are typed into `run --engine memory`."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.run import CASES, WALLAROO
from wallaroo import KafkaRecord
from wallaroo_runtime.case.record_line import record_line
from wallaroo_runtime.cli.main import main

PROGRAM = """
from wallaroo import goka

def count(ctx, message):
    ctx.set_value((ctx.value() or 0) + 1)
    ctx.emit("seen", ctx.key, message)

def forget(ctx, metadata):
    if ctx.value() < int(metadata):
        ctx.delete()

def application_setup(args):
    edges = goka.input("clicks", goka.String(), count), goka.output("seen", goka.String())
    group = goka.define_group("counts", *edges, goka.persist(goka.Int64()), goka.visitor("forget", forget))
    return goka.application(["127.0.0.1:9092"], group)
"""
SETTINGS = '[[input]]\nfile = "input.txt"\nkind = "records"\n'
KEYS = ["Ann", "Bob", "", "two words"]
Step = list[tuple[str, str]] | int  # key and message, or a visit


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(PROGRAM)
    (tmp_path / "case.toml").write_text(SETTINGS)
    (tmp_path / "input.txt").write_text("clicks Ann a\nclicks Bob b\n\nclicks Ann -\nvisit forget 2\nclicks Ann a\n")
    (tmp_path / "expected.txt").write_text("")
    return tmp_path


def expected(steps: list[Step]) -> list[str]:
    """Return what the program writes."""
    counts: dict[str, int] = {}
    made = []
    for step in steps:
        if isinstance(step, int):
            made += [KafkaRecord("counts-table", key.encode(), None) for key in counts if counts[key] < step]
            counts = {key: count for key, count in counts.items() if count >= step}
            continue
        for key, message in step:
            counts[key] = counts.get(key, 0) + 1
            made.append(KafkaRecord("counts-table", key.encode(), b"%d" % counts[key]))
            made.append(KafkaRecord("seen", key.encode(), message.encode()))
    return [record_line(record) for record in made]


def written(steps: list[Step]) -> Iterator[str]:
    for step in steps:
        if isinstance(step, int):
            yield f"visit forget {step}"
        else:
            yield from (record_line(KafkaRecord("clicks", key.encode(), text.encode())) for key, text in step)
            yield ""


STEPS = st.lists(
    st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(["a", "-", "x=1", "b c"])), min_size=1, max_size=4)
    | st.integers(0, 3),
    max_size=5,
)


@given(STEPS)
def test_a_case_gives_what_the_group_writes(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    folder = tmp_path_factory.mktemp("case")
    (folder / "app.py").write_text(PROGRAM)
    (folder / "case.toml").write_text(SETTINGS)
    (folder / "input.txt").write_text("\n".join(written(steps)))
    assert main(["test", str(folder), "--write"]) == 0
    found = (folder / "expected.txt").read_text().splitlines()
    assert found == sorted(expected(steps))
    assert main(["test", str(folder)]) == 0
    (folder / "expected.txt").write_text("".join(f"{line}\n" for line in [*found, "seen Cid a"]))
    assert main(["test", str(folder)]) == 1


@pytest.mark.slow
def test_a_case_of_both_languages(capsys: pytest.CaptureFixture[str]) -> None:
    """tests/test_memory_cases.py has the other cases, without the command."""
    assert main(["test", str(CASES / "goka_sum")]) == 0
    assert "2 passed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("input.txt", "clicks Ann a\nclicks Ann\n", "R721 line 2 of {0}/input.txt cannot take 'clicks Ann'; it has 2"),
        ("input.txt", "clickss Ann a\n", 'R720 the application has no topic "clickss"'),
        ("input.txt", "visit forgett 2\n", 'R720 the application has no visit "forgett"; it has "forget"'),
        ("case.toml", f'topics = ["count-table"]\n{SETTINGS}', '; did you mean "counts-table"?'),
    ],
)
def test_what_is_misspelt_is_named(
    file: str, text: str, said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / file).write_text(text)
    assert main(["test", str(project)]) == 1
    assert said.format(project) in capsys.readouterr().out


def test_a_case_of_a_group_without_input_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "case.toml").write_text("dead_letters = 0\n")
    assert main(["test", str(project)]) == 1
    said = capsys.readouterr().out
    assert "case.toml cannot be run; it has no input, and its application reads topics alone: clicks\n" in said
    assert 'fix: write [[input]], file = "input.txt" and kind = "records"; each line of the file is TOPIC' in said


def ran(app: Path, text: str, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [WALLAROO, "run", app, *options, "--engine", "memory"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@settings(max_examples=1, deadline=None)
@given(STEPS.filter(lambda steps: len(steps) > 1))  # Hypothesis' first example is as simple as can be
@example([])
@example([[("Ann", "a")], 2])
def test_a_run_in_memory_takes_records_and_shows_what_is_written(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    app = tmp_path_factory.mktemp("run") / "app.py"
    app.write_text(PROGRAM)
    done = ran(app, "\n".join(written(steps)))
    assert done.returncode == 0
    assert ("no records came" in done.stderr) == (not expected(steps))
    assert "topics that are read: clicks\n" in done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(expected(steps))
    done = ran(app, "\n".join(written(steps)), "--json")
    records, messages = ([json.loads(line) for line in text.splitlines()] for text in (done.stdout, done.stderr))
    assert len(records) == len(expected(steps)) and all("time" in each and "topic" in each for each in records)
    assert all("time" in each and "state" in each for each in messages)


@pytest.mark.slow
def test_a_run_in_memory_goes_on_after_a_line_that_is_wrong(project: Path) -> None:
    text = (
        "clicks Ann\nclicks Bob a\nclickss Ann a\nother Ann a\nother Ann b\nclicks Bob a\nvisit nosuch\nclicks Ann a\n"
    )
    done = ran(project / "app.py", text)
    assert done.returncode == 0, done.stderr
    assert [line[:5] for line in done.stderr.splitlines() if line[0] == "R"] == ["R721 ", "R720 ", "R720 ", "R720 "]
    assert (
        'R720 the application has no source of topic "other"; it has sources of "clicks"\n'
        "  fix: use a name from this list\n"
    ) in done.stderr
    assert "counts-table Ann 1\n" in done.stdout
    assert "counts-table Bob 2\n" in done.stdout  # it is in one micro-batch with the misspelt topic


LOOKUP = """
from wallaroo import goka

def check(ctx, message):
    ctx.emit("checked", ctx.key, f"{message} {ctx.lookup('names', ctx.key)}")

def application_setup(args):
    edges = goka.input("orders", goka.String(), check), goka.output("checked", goka.String())
    edges += (goka.loop(goka.String(), check),)
    group = goka.define_group("checks", *edges, goka.lookup("names", goka.String()))
    return goka.application(["127.0.0.1:9092"], group)
"""


@pytest.mark.slow
def test_topics_that_nothing_reads_or_feeds_are_named(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LOOKUP)
    done = ran(tmp_path / "app.py", "names Ann Smith\norders Ann hat\nchecked Ann coat\n")
    assert "checked Ann hat Smith\n" in done.stdout and "no records came" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line[0] == "R"] == [
        'R720 the application has no source of topic "checked"; it has sources of "orders", "checks-loop"'
    ]  # but "names" is looked up
    done = ran(CASES / "goka_clicks", "purchases Ann hat\nnobody Ann a\n", "127.0.0.1:9092")
    assert "no records came for: user-clicks\n" in done.stderr, done.stderr
    assert 'R720 the application has no source of topic "nobody"; it has sources of "' in done.stderr


@pytest.mark.slow
def test_a_group_in_go_runs_in_memory() -> None:
    case = CASES / "goka_sum"
    done = ran(case, (case / "input.txt").read_text(), "127.0.0.1:9092")
    assert done.returncode == 0 and "  fix: " not in done.stderr, done.stderr
    lines = (case / "expected.txt").read_text().splitlines()
    assert set(done.stdout.splitlines()) == set(lines)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "kit"), [("python", "wallaroo.testing"), ("go", "wallarootest")])
def test_a_remedy_is_in_the_programs_language(language: str, kit: str) -> None:
    files = CASES.parents[1] / "examples" / "tutorial" / "files"
    done = ran(files / "app.py" if language == "python" else files, "")
    assert done.returncode == 3
    assert f"messages in a test with {kit}\n" in done.stderr
