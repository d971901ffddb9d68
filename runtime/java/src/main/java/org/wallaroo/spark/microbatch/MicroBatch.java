package org.wallaroo.spark.microbatch;

import java.util.List;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.wallaroo.spark.query.Settings;

/** What the driver calls: the query of a plan in micro-batches. */
public final class MicroBatch {
    private MicroBatch() {}

    /**
     * Returns a plan as one streaming dataset, whose rows are JSON: descriptors of staged files, and accounts of tasks.
     *
     * @param session where it shall run
     * @param text settings, see {@link Settings}
     * @param records rows of the sources that Spark reads; they follow the journals, in Spark's checkpoint too
     */
    public static Dataset<Row> lower(SparkSession session, String text, List<Dataset<Row>> records) {
        Settings settings = new Settings(text);
        List<String> journals = settings.journals();
        Dataset<byte[]> parts = null;
        for (int number = 0; number < journals.size(); number++) {
            Dataset<byte[]> journal = session.readStream()
                    .format(JournalSource.class.getName())
                    .option("number", number)
                    .option("place", journals.get(number))
                    .option("batch_bytes", settings.batchBytes() / journals.size())
                    .option("parts", settings.parts())
                    .option("wait_ms", settings.waitMs())
                    .load()
                    .as(Encoders.BINARY());
            parts = parts == null ? journal : parts.union(journal);
        }
        Dataset<byte[]> rows = parts.mapPartitions(new SourceTask(settings), Encoders.BINARY());
        for (int number = 0; number < records.size(); number++) {
            rows = rows.union(records.get(number).mapPartitions(new RecordTask(settings, number), Encoders.BINARY()));
        }
        for (int level = 1; level < settings.levels(); level++) {
            rows = rows.groupByKey((MapFunction<byte[], Integer>) ShuffleRow::targetOf, Encoders.INT())
                    .transformWithState(new StateTask(settings, level), TimeMode.None(), OutputMode.Append(), Encoders.BINARY());
        }
        return rows.toDF("json");
    }
}
