"""Each case end to end, in one language: real sockets, local Spark, the expected lines and dead letters."""

from pathlib import Path

import pytest

from support.case import Case
from support.shown_case import show

pytestmark = pytest.mark.jvm

# The word count has a file of its own: test_run_word_count.py. All cases run in memory, in each language, and all plans
# are compared (test_memory_cases.py, test_cases.py); these show what only Spark does: ticks and generators of the
# gateway, two workers in one task, which the run of test_trace.py has, too. Two sources at one state are in
# test_run_shared_state.py.
SHOWN = (
    pytest.param("alerts_windowed", "python", marks=pytest.mark.long),
    pytest.param("mixed_language", "python", marks=pytest.mark.long),
)


@pytest.mark.parametrize(("name", "language"), SHOWN)
def test_case_gives_the_expected_output(name: str, language: str, tmp_path: Path) -> None:
    show(Case(name), language, tmp_path / "checkpoint")
