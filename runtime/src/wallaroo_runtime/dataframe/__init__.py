"""The steps of an application in a PySpark job of your own: DataFrames in, DataFrames out, streaming or batch."""

from wallaroo_runtime.dataframe import installed as installed  # the first import
from wallaroo_runtime.dataframe.steps import Steps, load

__all__ = ["Steps", "load"]
