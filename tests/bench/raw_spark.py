"""The word count by Spark's own operators, without user code: what `make bench-realtime` compares with.

Its socket source keeps nothing: what is sent is lost when it dies. Spark has no source for TCP that keeps it. For each
row it walks a linked list of all rows of its task, so that a large micro-batch takes the square of its size: full speed
(27,000 words/s) says nothing of Spark's operators and is not measured.
"""

import socket
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def main() -> None:
    """Count the words of lines from a port, and send each micro-batch's new totals to another one."""
    source, sink, checkpoint = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    receiver = socket.create_connection(("127.0.0.1", sink))

    def send(totals: DataFrame, batch: int) -> None:
        lines = "".join(f"{word} => {total}\n" for word, total in totals.collect())
        receiver.sendall(lines.encode())

    lines = session.readStream.format("socket").option("host", "127.0.0.1").option("port", source).load()
    totals = lines.select(F.explode(F.split("value", " ")).alias("word")).groupBy("word").count()
    query = totals.writeStream.outputMode("update").foreachBatch(send).option("checkpointLocation", checkpoint)
    query.start().awaitTermination()


if __name__ == "__main__":
    main()
