package org.wallaroo.spark.realtime;

import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import org.apache.spark.sql.streaming.TimeMode;
import org.wallaroo.spark.account.Numbers;
import org.wallaroo.spark.engine.Engine;
import org.wallaroo.spark.journal.JournalHead;
import org.wallaroo.spark.query.Settings;

/** The entry of the driver: the query of a plan, and its end. */
public final class RealTime {
    private static final int ONLY_KEY = 0;

    private RealTime() {}

    /**
     * Returns a plan as one streaming dataset, whose rows tell how far it has come.
     *
     * @param session where it shall run
     * @param text settings, see {@link Settings}
     */
    public static Dataset<Row> lower(SparkSession session, String text) {
        Settings settings = new Settings(text);
        Dataset<byte[]> rows = session.readStream()
                .format(JournalSource.class.getName())
                .option("settings", text)
                .load()
                .as(Encoders.BINARY())
                .coalesce(1); // with one shuffle partition there is no shuffle: all is one task
        if (settings.levels() > 1) {
            rows = keyed(rows, new StateKeeper());
        }
        return rows.toDF("barrier");
    }

    private static Dataset<byte[]> keyed(Dataset<byte[]> rows, StatefulProcessor<Integer, byte[], byte[]> processor) {
        return rows.groupByKey((MapFunction<byte[], Integer>) row -> ONLY_KEY, Encoders.INT())
                .transformWithState(processor, TimeMode.None(), OutputMode.Update(), Encoders.BINARY());
    }

    /** Returns the format of the sink. */
    public static String sink() {
        return BatchSink.class.getName();
    }

    /**
     * Returns what a driver asks ten times a second, in one call: whether a query is active (1 or 0), whether it has
     * begun to read the journal, how many messages of it are processed with all their output in the outbox (-1: none
     * yet), the last batch that Spark has reported (-1: none), how often {@link #numbers} have changed, and the id of the
     * last one of {@link #visits} (0: none).
     *
     * @param query that was started
     * @param text its settings
     */
    public static String look(StreamingQuery query, String text) {
        StreamingQueryProgress last = query.lastProgress();
        long batch = last == null ? -1 : last.batchId();
        int isActive = query.isActive() ? 1 : 0;
        Numbers numbers = Numbers.of(text);
        return isActive + " " + (numbers.isReading() ? 1 : 0) + " " + numbers.messages() + " " + batch
                + " " + numbers.changes() + " " + numbers.lastVisit();
    }

    /**
     * Returns the counts of visits whose output is all in the outbox, as JSON: {@code visits}, keys and failed ones by id;
     * {@code offset}, before which they are.
     *
     * @param text settings of the query
     * @param after id: only later visits
     */
    public static String visits(String text, long after) {
        return Numbers.of(text).visits(after);
    }

    /**
     * Returns the counts of a query's parts, as JSON: {@code offset}, before which all output is in the outbox;
     * {@code steps}, in, out, dead letters and those that windows dropped by path; {@code stores}, keys and bytes by stage and bucket;
     * {@code times}, messages by stage and milliseconds, since the last call.
     *
     * @param text its settings
     */
    public static String numbers(String text) {
        return Numbers.of(text).take();
    }

    /**
     * Lets the engine and the running batch of a query end now, so that their work is committed.
     *
     * @param text its settings
     */
    public static void endBatches(String text) {
        JournalHead.endBatches(text);
    }

    /**
     * Returns the offset with which all is committed that the engine of a query has done; -1: it has not ended, or no
     * batch has got its last barrier.
     *
     * @param text its settings
     */
    public static long end(String text) {
        return Engine.guard(new Settings(text)).end();
    }
}
