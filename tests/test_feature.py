"""The feature table: the page is what the table says, and every row can be checked."""

import random
import subprocess
from pathlib import Path

import pytest

from feature import PAGE, ROOT, Feature, Proof, check, copy_tree, faults, features, page, passed

ROWS = features()
SWITCHED_OFF = 12  # rows in each long run; `make features` has all of them
PROOFS = {f"{row.name}: {proof.name}": proof for row in ROWS for proof in row.proofs}


def chosen() -> list[Feature]:
    """Return some of the rows, others for each commit."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return random.Random(head).sample(ROWS, SWITCHED_OFF)


def test_page_is_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(ROWS)


def test_no_cell_is_empty() -> None:
    assert [row.name for row in ROWS if not (all(row.offered.values()) and row.proofs)] == []


def test_proofs_name_a_test_and_a_switch() -> None:
    for proof in PROOFS.values():
        check_proof(proof)


def check_proof(proof: Proof) -> None:
    if "#" in proof.test:
        package, name = proof.test.split("#")
        texts = [path.read_text(encoding="utf-8") for path in (ROOT / "api" / "go" / package).glob("*_test.go")]
        assert any(f"func {name}(" in text for text in texts), proof.test
    else:
        file, name = proof.test.split("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), proof.test
    assert (ROOT / proof.file).read_text(encoding="utf-8").count(proof.find) == 1, proof.find
    assert proof.find != proof.replace


def test_a_row_that_does_not_exist_is_told() -> None:
    assert check(["teleport"]) == ["no row's name holds 'teleport'"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree for this process of pytest."""
    root = tmp_path_factory.mktemp("features") / "tree"
    copy_tree(root)
    return root


@pytest.mark.long
def test_all_features_are_on(tree: Path) -> None:
    assert passed(list(PROOFS.values()), tree)


@pytest.mark.long
@pytest.mark.parametrize("row", chosen(), ids=lambda row: row.name)
def test_a_feature_that_is_switched_off_is_missed(row: Feature, tree: Path) -> None:
    assert list(faults(row, tree)) == []
