"""Reads the states in Spark's state store, and copies them for other numbers of buckets or the other mode."""
