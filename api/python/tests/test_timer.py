"""Time of state steps in a worker: the vectors, and drawn histories against the plain reference."""

import json
import random
from typing import Any

import pytest
from timer_case import VECTORS, Case, check

CASES = json.loads((VECTORS / "timers.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_vector(kit: Any, case: Case) -> None:
    for seed in range(6):
        sizes = (1000,) if case["is_one_call"] else (1,) if seed == 1 else (1, 2, 5, 1000)
        check(kit, case, random.Random(seed), sizes=sizes)


@pytest.mark.parametrize("histories", [150, pytest.param(5000, marks=pytest.mark.long)])
def test_drawn_histories_are_those_of_the_reference(kit: Any, histories: int) -> None:
    from make_timers import drawn

    for seed in range(1000, 1000 + histories):
        case = drawn(seed)
        check(kit, case, random.Random(seed), sizes=(1000,) if case["is_one_call"] else (1, 2, 5, 1000))
