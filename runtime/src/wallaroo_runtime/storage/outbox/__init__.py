"""The outbox: published output, in files that each micro-batch publishes once."""
