"""Journal and outbox where tasks and driver find them: in directories, or at a gateway and an egress over gRPC."""

from wallaroo_runtime.remote.place import Journal, JournalPlace, Output, OutputPlace, Staging
from wallaroo_runtime.remote.service import Service

__all__ = ["Journal", "JournalPlace", "Output", "OutputPlace", "Service", "Staging"]
