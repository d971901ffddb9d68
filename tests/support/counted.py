"""Numbers of a step, as a worker counts them."""

from collections import Counter


def counted(came: int = 0, went: int = 0, dead: int = 0, late: int = 0) -> Counter[str]:
    """Return them by their names."""
    return Counter(messages_in=came, messages_out=went, dead_letters=dead, dropped_late=late)
