"""Translates errors of Spark, Java and Py4J to diagnostics."""
