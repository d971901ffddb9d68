package org.wallaroo.spark.microbatch;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.wallaroo.spark.query.Settings;
import org.wallaroo.spark.query.Ticks;
import org.wallaroo.spark.state.StateStore;

/** Makes the dataset of a plan in micro-batches. The driver program in Python calls it, and starts the query. */
public final class MicroBatch {
    private MicroBatch() {}

    /**
     * Returns a plan as one streaming dataset, whose rows are JSON: descriptors of staged files, and accounts of tasks.
     *
     * @param session in which the query will run
     * @param text settings, see {@link Settings}
     * @param records rows of the sources that Spark reads; in Spark's plan and checkpoint, they follow the journals
     */
    public static Dataset<Row> lower(SparkSession session, String text, List<Dataset<Row>> records) {
        Settings settings = Settings.of(text);
        List<JsonNode> journals = settings.journals();
        Dataset<byte[]> parts = null;
        for (int number = 0; number < journals.size(); number++) {
            Dataset<byte[]> journal = session.readStream()
                    .format(JournalSource.class.getName())
                    .option("number", number)
                    .option("place", journals.get(number).toString())
                    .option("batch_bytes", settings.batchBytes() / journals.size())
                    .option("parts", settings.parts())
                    .option("wait_ms", settings.waitMs())
                    .load()
                    .as(Encoders.BINARY());
            parts = parts == null ? journal : parts.union(journal);
        }
        return levels(settings, parts.mapPartitions(new SourceTask(settings), Encoders.BINARY()), records, List.of()).toDF("json");
    }

    /**
     * Returns the outputs of a plan that is applied to rows of a user's own query, streaming or not.
     *
     * @param text settings, see {@link Settings}
     * @param records rows of the plan's sources
     * @param states for each level the states of a new query, from {@link StateStore#given}; empty if it has none
     * @return rows as {@link OutputRows} makes them
     */
    public static Dataset<Row> apply(String text, List<Dataset<Row>> records, List<Dataset<Row>> states) {
        Settings settings = Settings.of(text);
        Ticks ticks = settings.applied().ticks();
        SparkSession session = records.get(0).sparkSession();
        Dataset<byte[]> others = null; // rows of no source
        if (ticks.are(Ticks.CLOCK)) {
            others = session.readStream()
                    .format(TickSource.class.getName())
                    .option("interval_ms", ticks.intervalMs())
                    .load()
                    .as(Encoders.BINARY())
                    .flatMap((FlatMapFunction<byte[], byte[]>) tick -> ShuffleRow.toAll(
                            settings.targets(), ShuffleRow.Kind.DATA, tick).iterator(), Encoders.BINARY());
        } else if (ticks.are(Ticks.END)) {
            others = toAll(session, settings, ShuffleRow.Kind.DATA, WindowTime.end());
        } else if (settings.applied().givesStates() && settings.levels().size() > 1) {
            others = toAll(session, settings, ShuffleRow.Kind.ACCOUNT, TaskAccount.EMPTY);
        }
        return levels(settings, others, records, states).flatMap(new OutputRows(settings), Encoders.row(OutputRows.SCHEMA));
    }

    /** Returns a row for each partition, since Spark runs no partition without rows, even if it has states. */
    private static Dataset<byte[]> toAll(SparkSession session, Settings settings, ShuffleRow.Kind kind, byte[] payload) {
        return session.createDataset(ShuffleRow.toAll(settings.targets(), kind, payload), Encoders.BINARY());
    }

    /**
     * Chains the levels (a level is the stages between two shuffles): each takes the output of the level before. Returns
     * the output of the last one.
     *
     * @param others output of level 0 for all input that is not in {@code records}; null if there is no such input
     */
    private static Dataset<byte[]> levels(
            Settings settings, Dataset<byte[]> others, List<Dataset<Row>> records, List<Dataset<Row>> states) {
        Dataset<byte[]> rows = others;
        for (int number = 0; number < records.size(); number++) {
            Dataset<byte[]> found = records.get(number).mapPartitions(new RecordTask(settings, number), Encoders.BINARY());
            rows = rows == null ? found : rows.union(found);
        }
        for (int level = 1; level < settings.levels().size(); level++) {
            StateTask task = new StateTask(settings, level);
            var grouped = rows.groupByKey((MapFunction<byte[], Integer>) ShuffleRow::targetOf, Encoders.INT());
            rows = states.isEmpty()
                    ? grouped.transformWithState(task, TimeMode.None(), OutputMode.Append(), Encoders.BINARY())
                    : grouped.transformWithState(task, TimeMode.None(), OutputMode.Append(), states.get(level - 1)
                            .as(Encoders.BINARY())
                            .groupByKey((MapFunction<byte[], Integer>) StateStore::targetOf, Encoders.INT()),
                            Encoders.BINARY(), Encoders.BINARY());
        }
        return rows;
    }
}
