"""Compares what an application gave with what it must give."""

from model.application import Application
from model.outcome import Published
from model.reference import Reference, arranged


def check(application: Application, found: Published) -> None:
    """Compare output and dead letters with the reference's."""
    expected = Reference(application).run(application.chunks)
    errors = "\n".join(found.errors[:20])
    assert found.letters == expected.letters, (
        f"dead letters: too many {found.letters - expected.letters}, missing {expected.letters - found.letters}\n{errors}"
    )
    for number in range(len(application.sinks)):
        actual = arranged(application, found.lines.get(number, []))
        wanted = arranged(application, expected.lines[number])
        for place in sorted(actual.keys() | wanted.keys()):
            assert actual.get(place, []) == wanted.get(place, []), f"sink {number}, end and key {place}\n{errors}"
