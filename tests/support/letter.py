"""What is found of dead letters."""

from wallaroo_runtime.lowering.letter_tail import Found
from wallaroo_runtime.spark.letter_watch import LetterWatch


class Kept(LetterWatch):
    """Keeps all that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Found = []

    def add(self, found: Found, published: int) -> None:
        """Keep what comes."""
        super().add(found, published)
        self.found += found
