"""Runs a plan on Spark. Only this package and `dataframe` import PySpark."""
