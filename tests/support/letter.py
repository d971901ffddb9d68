"""What is found of dead letters."""

from wallaroo_runtime.spark.letter_watch import LetterWatch
from wallaroo_runtime.storage.outbox.letter_tail import Found


class Kept(LetterWatch):
    """Keeps all that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Found = []

    def add(self, found: Found, published: int) -> None:
        """Keep what comes."""
        super().add(found, published)
        self.found += found
