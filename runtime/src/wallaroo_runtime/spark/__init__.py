"""Lowers a plan to PySpark; the only package that imports it."""
