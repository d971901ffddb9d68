"""Code of Spark's tasks in micro-batches, and the Python processes that run it."""
