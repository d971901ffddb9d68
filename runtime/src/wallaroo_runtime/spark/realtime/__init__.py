"""Runs a plan in Spark's real-time mode, with operators in Java."""
