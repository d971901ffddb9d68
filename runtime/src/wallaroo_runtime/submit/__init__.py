"""Submits applications with `spark-submit`."""
