"""`run --available-now`: what it refuses, and when it is complete."""

from pathlib import Path

import pytest

from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run.check import check_ends
from wallaroo_runtime.topology.load import load
from wallaroo_runtime.topology.model import KafkaSource, SparkSource

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
WORD_COUNT = str(VALID / "word_count.json")
ENDLESS = "has no end that is known at the start, as files and topics have"
FIX = "leave it out and give --stop-when-idle SECONDS, e.g. 10"


@pytest.mark.parametrize("document", sorted(VALID.glob("*.json")), ids=lambda path: path.stem)
def test_a_run_to_the_end_needs_sources_that_have_one(document: Path) -> None:
    """Those of files and topics do; `run` refuses others before Spark starts."""
    topology = load(document.read_bytes())
    endless = [each.name for each in topology.sources() if not isinstance(each, KafkaSource | SparkSource)]
    if not endless:
        check_ends(topology)
        return
    with pytest.raises(RunError) as caught:
        check_ends(topology)
    reason = f'--available-now: source "{endless[0]}" has no end that is known at the start, as files and topics have'
    assert (caught.value.exit_code, str(caught.value)) == (2, f"R608 {reason}\n  fix: {FIX}")


@pytest.mark.parametrize(
    ("options", "reason", "fix"),
    [
        ([], f'--available-now: source "Split and Count" {ENDLESS}', FIX),
        (
            ["--stop-when-idle", "1"],
            "--available-now does not go with --stop-when-idle: it waits until all is delivered, however long that "
            "takes",
            "leave out --stop-when-idle, or --available-now",
        ),
    ],
)
def test_the_command_says_what_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], reason: str, fix: str
) -> None:
    assert main(["run", WORD_COUNT, "--checkpoint", str(tmp_path / "c"), "--available-now", *options]) == 2
    assert capsys.readouterr().err == f"R608 {reason}\n  fix: {fix}\n"
    assert not (tmp_path / "c").exists()
