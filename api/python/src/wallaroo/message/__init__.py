"""Messages, keys, states and records as values and as bytes: shared with workers, test kit and runtime."""
