"""Prepares the machine of a query: checks it, starts Java with its settings and files, finds the Spark master."""
