"""Keeps what the application sends, and delivers it over TCP, in order, once."""

from wallaroo_runtime.egress.outbox import Outbox
from wallaroo_runtime.egress.staging import StagedFile, StagingWriter

__all__ = ["Outbox", "StagedFile", "StagingWriter"]
