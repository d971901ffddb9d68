"""The journal: what arrived, in order of arrival, in files that only grow.

ARCHITECTURE.md, "Files of a run", has the layout. One process writes a journal, any number read it.
"""

from wallaroo_runtime.ingest.head import Position, read_committed
from wallaroo_runtime.ingest.reader import JournalReader, Range
from wallaroo_runtime.ingest.writer import JournalWriter

__all__ = ["JournalReader", "JournalWriter", "Position", "Range", "read_committed"]
