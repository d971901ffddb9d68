"""Journal and outbox where tasks and driver find them."""

from wallaroo_runtime.remote.place import Journal, JournalPlace, Output, OutputPlace, Staging

__all__ = ["Journal", "JournalPlace", "Output", "OutputPlace", "Staging"]
