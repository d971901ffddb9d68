"""The process that empties the outbox: delivers what the application sends, in order, once."""
