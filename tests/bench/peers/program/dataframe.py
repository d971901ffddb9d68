"""The work of `make bench-peers` with our steps in a PySpark job; the programs are those of `wallaroo run`."""

import os
import sys

from pyspark.sql import SparkSession

from wallaroo_runtime.dataframe import load

app, jars = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
builder = SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.memory", "1g").config("spark.ui.showConsoleProgress", "false")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", os.environ["BROKER"])
source = source.option("kafka.max.poll.records", 100000).option("kafka.fetch.max.wait.ms", 5)  # as docs/dataframes.md
source = source.option("subscribe", os.environ["INPUT"]).option("startingOffsets", "earliest")
records = source.option("maxOffsetsPerTrigger", os.environ["BATCH"]).load().select("key", "value", "timestamp")
sink = load(app).apply(records).writeStream.format("kafka").option("kafka.bootstrap.servers", os.environ["BROKER"])
sink = sink.option("topic", os.environ["OUTPUT"]).option("checkpointLocation", os.environ["STATE"])
sink.start().awaitTermination()
