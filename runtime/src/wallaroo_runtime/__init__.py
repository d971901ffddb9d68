"""Compiles Wallaroo topologies to Spark Structured Streaming and runs them."""
