"""Values of a topology for sources and sinks of Spark: the format of DataFrames, and the expression for all columns."""

DATAFRAME = "dataframe"  # format of sources and sinks that a PySpark job has
EVERYTHING = "*"  # all columns, in place of an SQL expression for the message
