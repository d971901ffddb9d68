"""Runs a plan on PySpark. No other package imports PySpark."""
