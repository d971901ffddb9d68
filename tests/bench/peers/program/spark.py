"""The work of `make bench-peers` in PySpark by hand: `transformWithStateInPandas`, output at least once."""

import json
import os
import sys
from collections.abc import Iterable, Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor

WORK, BROKER = os.environ["WORK"], os.environ["BROKER"]
SCHEMA = "key string, value string"
STORE = "spark.sql.streaming.stateStore"
SETTINGS = {
    "spark.jars": sys.argv[1],
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    f"{STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{STORE}.rocksdb.changelogCheckpointing.enabled": "true",
}


class Count(StatefulProcessor):
    """Counts the rows of a key."""

    def init(self, handle):
        """Declare the state."""
        self.state = handle.getValueState("count", "count long")

    def handleInputRows(self, key, rows, timers):  # noqa: N802
        """Yield a row for each one."""
        count = self.state.get()[0] if self.state.exists() else 0
        for frame in rows:
            values = [f"{key[0]} => {n} {text}".rstrip() for n, text in enumerate(frame["value"], count + 1)]
            count += len(values)
            yield pd.DataFrame({"key": key[0], "value": values})
        self.state.update((count,))

    def close(self):
        """Nothing is open."""


def convert(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        readings = [json.loads(text) for text in frame["value"]]
        values = [
            json.dumps(
                {
                    "id": reading["id"],
                    "user": reading["user"].upper(),
                    "celsius": (reading["fahrenheit"] - 320) * 50 // 9,
                    "place": reading["place"],
                }
            )
            for reading in readings
        ]
        yield pd.DataFrame({"key": [reading["user"] for reading in readings], "value": values})


os.environ["PYSPARK_PYTHON"] = sys.executable
builder = SparkSession.builder.master("local[2]")
for name, setting in SETTINGS.items():
    builder = builder.config(name, setting)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", BROKER)
source = source.option("subscribe", os.environ["INPUT"]).option("startingOffsets", "earliest")
records = source.option("maxOffsetsPerTrigger", os.environ["BATCH"]).load()
if WORK == "json":
    results = records.selectExpr("CAST(value AS STRING)").mapInPandas(convert, SCHEMA)
else:
    if WORK == "words":
        words = F.explode(F.split(F.col("value").cast("string"), " "))
        rows = records.select(words.alias("key"), F.lit("").alias("value"))
    else:
        rows = records.selectExpr("CAST(key AS STRING)", "substring_index(CAST(value AS STRING), ' ', -1) AS value")
    results = rows.groupBy("key").transformWithStateInPandas(Count(), SCHEMA, "Append", "None")
sink = results.writeStream.format("kafka").option("kafka.bootstrap.servers", BROKER)
sink = sink.option("topic", os.environ["OUTPUT"]).option("checkpointLocation", os.environ["STATE"])
sink.outputMode("append").start().awaitTermination()
