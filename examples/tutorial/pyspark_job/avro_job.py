"""A PySpark job: orders come from Kafka in Avro, alerts go there in Avro, and a schema registry has the schemas.

python avro_job.py APP BROKER REGISTRY: each run processes the orders that have come since the last one.
"""

import json
import sys
from urllib.request import Request, urlopen

from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.functions import concat, expr, struct

from wallaroo_runtime.dataframe import load

FIELDS = {"customer": "string", "city": "string", "ratio": "double"}
ALERT = {"type": "record", "name": "Alert", "fields": [{"name": n, "type": t} for n, t in FIELDS.items()]}
# The steps are between two DataFrames. So SQL may come before and after them.
BEFORE = "SELECT row.* FROM records WHERE row.amount > 0"
AFTER = "SELECT customer, city, round(amount / usual, 1) AS ratio FROM alerts JOIN customers USING (customer)"


def ask(url, body=None):
    """Return an answer of the schema registry. If there is a body, send it, e.g. a schema to store."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": "application/vnd.schemaregistry.v1+json"})) as answer:
        return json.load(answer)


def prefix(schema):
    """Return the first five bytes of a record as an SQL literal: a zero, and the number of its schema."""
    return f"X'00{schema:08x}'"


def orders(spark, broker, registry):
    """Return the orders of the topic. A record with a schema other than the latest one ends the query."""
    latest = ask(f"{registry}/subjects/orders-value/versions/latest")
    value = f"IF(left(value, 5) = {prefix(latest['id'])}, substr(value, 6), raise_error('another schema'))"
    records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker)
    records = records.option("kafka.max.poll.records", 100000).option("kafka.fetch.max.wait.ms", 5)
    records = records.option("subscribe", "orders").option("startingOffsets", "earliest").load()
    records.select(from_avro(expr(value), latest["schema"]).alias("row")).createOrReplaceTempView("records")
    return spark.sql(BEFORE)


def start(spark, steps, broker, registry):
    """Start the query that reads orders from one topic and writes alerts to another topic."""
    spark.read.json("customers").createOrReplaceTempView("customers")
    alerts = steps.apply(orders=orders(spark, broker, registry), order_by="at")
    alerts.createOrReplaceTempView("alerts")
    number = ask(f"{registry}/subjects/alerts-value/versions", {"schema": json.dumps(ALERT)})["id"]
    value = concat(expr(prefix(number)), to_avro(struct(*FIELDS), json.dumps(ALERT)))
    records = spark.sql(AFTER).select(value.alias("value"))
    writer = records.writeStream.format("kafka").option("kafka.bootstrap.servers", broker).option("topic", "alerts")
    return writer.option("checkpointLocation", "out/avro_checkpoint").trigger(availableNow=True).start()


if __name__ == "__main__":
    app, broker, registry = sys.argv[1:]
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", 4).getOrCreate()
    start(spark, load(app), broker, registry).awaitTermination()
