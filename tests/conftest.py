"""Fixtures that several test files share: built Go programs, and the option that rewrites golden files."""

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="write the golden files anew instead of comparing")


@pytest.fixture(scope="session")
def rewrites_golden(request: pytest.FixtureRequest) -> bool:
    """Say whether golden files are to be written."""
    return bool(request.config.getoption("--golden"))


@pytest.fixture(scope="session")
def go_conformance() -> Path:
    """Build the Go conformance application."""
    from wallaroo_runtime.worker.build import build

    return build(HERE / "conformance")
