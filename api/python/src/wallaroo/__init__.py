"""Write stream computations in Python and run them on Apache Spark."""
