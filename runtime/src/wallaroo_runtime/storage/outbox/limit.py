"""Declares the default of `spark.wallaroo.outbox.maxBytes`, the limit for output that waits for sinks."""

MAX_OUTBOX_BYTES = 4 << 30
