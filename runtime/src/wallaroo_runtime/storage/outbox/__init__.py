"""The outbox: output that counts, in files that are published once per micro-batch."""
