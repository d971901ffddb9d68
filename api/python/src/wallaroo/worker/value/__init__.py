"""Messages and states between bytes and objects, and dead letters of those that fail."""
