"""Reads and rescales the states in Spark's store, without running the query."""
