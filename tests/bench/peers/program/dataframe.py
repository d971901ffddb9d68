"""The work of `make bench-peers` with our steps in a PySpark job; the programs are those of `wallaroo run`."""

import os
import sys

from pyspark.sql import SparkSession

from wallaroo_runtime.dataframe import load

app, jars = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
builder = SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # as docs/dataframes.md advises
builder = builder.config("spark.driver.extraJavaOptions", quick)
builder = builder.config("spark.driver.memory", "1g").config("spark.ui.showConsoleProgress", "false")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", os.environ["BROKER"])
source = source.option("subscribe", os.environ["INPUT"]).option("startingOffsets", "earliest")
records = source.option("maxOffsetsPerTrigger", os.environ["BATCH"]).load().select("key", "value", "timestamp")
sink = load(app).apply(records).writeStream.format("kafka").option("kafka.bootstrap.servers", os.environ["BROKER"])
sink = sink.option("topic", os.environ["OUTPUT"]).option("checkpointLocation", os.environ["STATE"])
sink.start().awaitTermination()
