"""A plan in Spark's real-time mode, whose operators are in Java."""
