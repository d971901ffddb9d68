"""A PySpark job: orders of the past as a batch, later ones as a stream that begins with the states of the batch.

python job.py APP: the first run processes the past, and each run all orders that have come since.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from wallaroo_runtime.dataframe import load

ORDERS = "customer STRING, amount DOUBLE, at TIMESTAMP"
SEAM = "TIMESTAMP '2026-01-01T00:00:00Z'"  # earlier orders belong to the batch, other orders to the stream


def backfill(spark, steps):
    """Process the orders of the past as a batch: write their alerts, their dead letters, and the states at the end."""
    orders = spark.read.schema(ORDERS).json("orders").where(f"at < {SEAM}")
    rows = steps.apply_all(orders=orders, order_by="at", gives_states=True).persist()
    steps.select(rows, "alerts").write.mode("overwrite").parquet("out/past")
    steps.dead_letters(rows).write.mode("overwrite").parquet("out/dead_letters")
    steps.states(rows).write.mode("overwrite").parquet("out/states")
    rows.unpersist()


def live(spark, steps):
    """Start the query. At its first start it takes over the states of the batch."""
    orders = spark.readStream.schema(ORDERS).json("orders").where(f"at >= {SEAM}")
    alerts = steps.apply(orders=orders, order_by="at", states=spark.read.parquet("out/states"))
    customers = spark.read.json("customers")
    writer = alerts.join(customers, "customer").writeStream.format("parquet")
    writer = writer.option("path", "out/alerts").option("checkpointLocation", "out/checkpoint")
    return writer.trigger(availableNow=True).start()  # without this trigger the query runs until it is stopped


if __name__ == "__main__":
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", 4).getOrCreate()
    steps = load(sys.argv[1])
    if not Path("out/states/_SUCCESS").exists():
        backfill(spark, steps)
    live(spark, steps).awaitTermination()
    spark.read.parquet("out/past").show(truncate=False)
    spark.read.parquet("out/alerts").orderBy("at").show(truncate=False)
