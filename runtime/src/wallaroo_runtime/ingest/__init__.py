"""Takes in messages over TCP and keeps them in a journal until Spark is done with them."""

from wallaroo_runtime.ingest.journal import JournalReader, JournalWriter, Position, Range

__all__ = ["JournalReader", "JournalWriter", "Position", "Range"]
