"""The machine of a query: Java with its settings and files, and the Spark master."""
