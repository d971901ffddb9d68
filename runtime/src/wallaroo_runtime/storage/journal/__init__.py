"""Reads and writes the journal: the messages of sources, in order of arrival, in files that only grow.

docs/internals/input.md has the layout. One process writes a journal, any number of processes read it.
"""

from wallaroo_runtime.storage.journal.head import Position, read_committed
from wallaroo_runtime.storage.journal.reader import JournalReader, Range
from wallaroo_runtime.storage.journal.writer import JournalWriter

__all__ = ["JournalReader", "JournalWriter", "Position", "Range", "read_committed"]
