"""Draws applications and compares what they give with the reference, until one differs or so many did not."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from model.application import GO, PYTHON, Application
from model.check import check
from model.draw import applications
from model.outcome import Published

Run = Callable[[Application, Path], Published]


def as_drawn(application: Application) -> Application:
    """Return an application as it is."""
    return application


def search(
    run: Run,
    count: int,
    *,
    number: int,
    languages: Sequence[str] = (PYTHON, GO),
    shrinks: bool = True,
    prepare: Callable[[Application], Application] = as_drawn,
    begins: Sequence[str] = (),
) -> int:
    """Run drawn applications; returns how many ran.

    Args:
        run: Runs one with a directory of its own.
        count: How many.
        number: Of the draw: the same one gives the same applications.
        languages: Of their programs.
        shrinks: Whether one that differs is made small before it is shown.
        prepare: Changes an application before it runs.
        begins: Steps with which each begins.

    Raises:
        AssertionError: One gave something else than the reference; it is shown.
    """
    ran = 0
    phases = [Phase.generate, *([Phase.shrink] if shrinks else [])]

    @seed(number)
    @settings(max_examples=count, deadline=None, database=None, phases=phases, suppress_health_check=list(HealthCheck))
    @given(applications(languages, begins=begins))
    def each(application: Application) -> None:
        nonlocal ran
        ran += 1
        application = prepare(application)
        with tempfile.TemporaryDirectory(prefix="model-") as directory:
            check(application, run(application, Path(directory)))

    each()
    return ran
