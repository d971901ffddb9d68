"""The feature table: the page is what the table says, and every row can be checked."""

import pytest

from feature import PAGE, ROOT, Feature, Proof, check, features, page

ROWS = features()
PROOFS = {f"{row.name}: {proof.name}": proof for row in ROWS for proof in row.proofs}


def test_page_is_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_no_cell_is_empty(row: Feature) -> None:
    assert all(row.offered.values()) and row.proofs


@pytest.mark.parametrize("proof", PROOFS.values(), ids=PROOFS)
def test_proof_names_a_test_and_a_switch(proof: Proof) -> None:
    if "#" in proof.test:
        package, name = proof.test.split("#")
        texts = [path.read_text(encoding="utf-8") for path in (ROOT / "api" / "go" / package).glob("*_test.go")]
        assert any(f"func {name}(" in text for text in texts)
    else:
        file, name = proof.test.split("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
    assert (ROOT / proof.file).read_text(encoding="utf-8").count(proof.find) == 1, proof.find
    assert proof.find != proof.replace


@pytest.mark.slow
def test_features_that_are_switched_off_are_missed() -> None:
    assert check(["merge", "late messages", "among several results"]) == []


def test_a_row_that_does_not_exist_is_told() -> None:
    assert check(["teleport"]) == ["no row's name holds 'teleport'"]


@pytest.mark.long
def test_every_feature_that_is_switched_off_is_missed() -> None:
    assert check([]) == []
