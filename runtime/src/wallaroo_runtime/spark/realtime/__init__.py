"""Lowering of a plan to Spark's real-time mode, whose operators are in Java."""
