"""States in Spark's store, outside of a query: read and rescaled."""
