"""The process that empties the outbox: delivers the application's output, in order, once."""
