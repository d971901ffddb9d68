"""Errors of Spark, Java and py4j as diagnostics."""
