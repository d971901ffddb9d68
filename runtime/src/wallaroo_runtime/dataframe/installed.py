"""Refuses a Python without PySpark, or with the client of Spark Connect alone (R728), before other modules fail."""

from importlib.util import find_spec

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.spark.machine.check import no_pyspark

if find_spec("pyspark") is None:
    raise RunError([no_pyspark("it is not installed")], USAGE)
if find_spec("py4j") is None:
    REASON = "py4j is missing: pyspark-client, for Spark Connect alone, cannot use classes of Java; uninstall it first"
    raise RunError([no_pyspark(REASON)], USAGE)
