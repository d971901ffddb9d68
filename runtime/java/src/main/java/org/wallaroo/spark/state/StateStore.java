package org.wallaroo.spark.state;

import static org.apache.spark.sql.functions.broadcast;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.shiftright;

import java.util.List;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.wallaroo.spark.bucket.SparkBucketStore;

/** The calls of the driver program in Python that read the states of a checkpoint, and write those of a new one. */
public final class StateStore {
    private static final int NUMBER_BITS = 32;
    private static final StructType CHOSEN = new StructType()
            .add("port", DataTypes.IntegerType)
            .add("key", DataTypes.BinaryType)
            .add("encoding", DataTypes.IntegerType)
            .add("size", DataTypes.LongType)
            .add("value", DataTypes.BinaryType);

    private StateStore() {}

    /**
     * Returns rows of Spark's store: versions of buckets and entries of their logs, as {@link StoredLogs} reads them.
     *
     * @param checkpoint path of Spark's checkpoint
     * @param operator of the stage
     * @param batch a committed micro-batch
     * @param first number of the stage's first bucket in Spark's store
     * @param buckets number of buckets of the stage
     */
    public static Dataset<Row> logs(
            SparkSession session, String checkpoint, int operator, long batch, int first, int buckets) {
        Column number = col("user_map_key.value");
        return session.read().format("statestore").option("operatorId", operator).option("batchId", batch)
                .option("stateVarName", SparkBucketStore.NAME).load(checkpoint)
                .select(number.as("number"), col("user_map_value.value").as("value"))
                .where(col("number").geq(lit((long) first << NUMBER_BITS))
                        .and(col("number").lt(lit((long) (first + buckets) << NUMBER_BITS))));
    }

    /** Returns the rows of {@link #logs} that belong to some buckets. */
    public static Dataset<Row> ofBuckets(Dataset<Row> logs, List<Integer> buckets) {
        return logs.where(shiftright(col("number"), NUMBER_BITS).isin(buckets.toArray()));
    }

    private static Dataset<Row> sorted(Dataset<Row> logs) {
        Column entry = col("number").plus(1).bitwiseAND(lit(0xffffffffL)); // a version is entry -1, and comes first
        return logs.sortWithinPartitions(shiftright(col("number"), NUMBER_BITS), entry);
    }

    /**
     * Reads the states in logs, and returns those that a user wants to see.
     *
     * @param logs from {@link #logs}
     * @param choice see {@link ChosenStates}
     */
    public static Dataset<Row> chosen(Dataset<Row> logs, String choice) {
        return sorted(logs).mapPartitions(new ChosenStates(choice), Encoders.row(CHOSEN));
    }

    /**
     * Returns the states of logs as rows for {@link #load}, for a checkpoint with other buckets.
     *
     * @param logs of a stage, from {@link #logs}
     * @param block of the stage in the new checkpoint
     * @param buckets number of the stage's buckets in the new checkpoint
     * @param targets keys by which Spark's shuffle brings rows to the partitions of the new checkpoint
     */
    public static Dataset<Row> moved(Dataset<Row> logs, int block, int buckets, List<Integer> targets) {
        return sorted(logs).mapPartitions(StoredLogs.moving(layout(block, buckets, targets)), Encoders.BINARY()).toDF("row");
    }

    /**
     * Returns the values of a table of Goka as states, in rows for {@link #load}.
     *
     * @param values rows with a key, its value, and whether several partitions have values of this key
     * @param port of the states of the group
     * @param isPython whether the group's worker is in Python; otherwise it is in Go
     */
    public static Dataset<Row> table(
            Dataset<Row> values, int port, boolean isPython, int block, int buckets, List<Integer> targets) {
        TableStates function = new TableStates(layout(block, buckets, targets), port, isPython);
        return values.mapPartitions(function, Encoders.BINARY()).toDF("row");
    }

    /**
     * Returns states that a user gives to a query as rows for {@link FirstLogs}.
     *
     * @param states rows of port, key, encoding and value, of one stage
     */
    public static Dataset<Row> given(Dataset<Row> states, int block, int buckets, List<Integer> targets) {
        LogWriter.Layout layout = layout(block, buckets, targets);
        MapPartitionsFunction<Row, byte[]> function = rows -> new LogRows<>(layout, rows, StateStore::add, writer -> { });
        return states.mapPartitions(function, Encoders.BINARY()).toDF("row");
    }

    private static void add(LogWriter writer, Row state) {
        byte[] value = state.getAs(3);
        writer.add(new StateKey(state.getInt(0), state.getAs(1)),
                new StateValue(state.getInt(2), value.length, List.of(value)));
    }

    /** Returns the key by which Spark's shuffle brings a row for {@link FirstLogs} to its partition. */
    public static int targetOf(byte[] row) {
        return LoadRow.targetOf(row);
    }

    private static LogWriter.Layout layout(int block, int buckets, List<Integer> targets) {
        return new LogWriter.Layout(block, buckets, targets.stream().mapToInt(Integer::intValue).toArray());
    }

    /**
     * Returns a streaming dataset whose first micro-batch writes logs into the stores of its operators. Its rows are
     * the notes for the driver that the written rows have. Without operators it has no rows.
     *
     * @param logs for each operator the rows of {@link #moved} or {@link #table}; no rows if it has no states yet
     * @param isUpdate whether the operators' output mode is update; otherwise it is append
     */
    public static Dataset<Row> load(SparkSession session, List<Dataset<Row>> logs, boolean isUpdate) {
        if (logs.isEmpty()) {
            return once(session).where(lit(false)).select(lit(new byte[0]).as("note"));
        }
        Dataset<byte[]> notes = null;
        for (Dataset<Row> log : logs) {
            Dataset<byte[]> rows = broadcast(once(session)).crossJoin(log).select("row").as(Encoders.BINARY());
            Dataset<byte[]> loaded = rows.groupByKey((MapFunction<byte[], Integer>) LoadRow::targetOf, Encoders.INT())
                    .transformWithState(new LogLoader(), TimeMode.None(),
                            isUpdate ? OutputMode.Update() : OutputMode.Append(), Encoders.BINARY());
            notes = notes == null ? loaded : notes.union(loaded);
        }
        return notes.toDF("note");
    }

    private static Dataset<Row> once(SparkSession session) {
        return session.readStream().format("rate-micro-batch")
                .option("rowsPerBatch", 1).option("numPartitions", 1).load().select(col("value").as("once"));
    }
}
