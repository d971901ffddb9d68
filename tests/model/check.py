"""Compares what an application gave with what it must give."""

from collections import Counter

from model.application import Application
from model.outcome import Published
from model.reference import Place, Reference, arranged


def check(application: Application, found: Published) -> None:
    """Compare output and dead letters with the reference's."""
    expected = Reference(application, counts_ticks=found.counts_ticks).run(application.chunks)
    letters: Counter[Place] = Counter()
    for (part, sequence), count in expected.letters.items():
        letters[found.names.get(part, part), sequence] += count
    errors = "\n".join(found.errors[:20])
    assert found.letters == letters, (
        f"dead letters: too many {found.letters - letters}, missing {letters - found.letters}\n{errors}"
    )
    for number in range(len(application.sinks)):
        actual = arranged(application, found.lines.get(number, []))
        wanted = arranged(application, expected.lines[number])
        for place in sorted(actual.keys() | wanted.keys()):
            assert actual.get(place, []) == wanted.get(place, []), f"sink {number}, end and key {place}\n{errors}"
