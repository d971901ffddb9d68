"""States of the word count, asked of a monitor or printed by `wallaroo state`."""

from collections import Counter, defaultdict
from typing import Any

STATE = "word totals"


def totals(value: dict[str, Any]) -> dict[str, int]:
    """Return the totals in the state of a letter, whatever its field is called in a language."""
    (found,) = value.values()
    return dict(found)


def by_letter(counts: Counter[str]) -> dict[str, dict[str, int]]:
    """Return what the state of each first letter must be; other beginnings share the key `!`."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for word, count in counts.items():
        found[word[0] if "a" <= word[0] <= "z" else "!"][word] = count
    return dict(found)
