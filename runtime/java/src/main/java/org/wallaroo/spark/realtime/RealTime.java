package org.wallaroo.spark.realtime;

import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import org.apache.spark.sql.streaming.TimeMode;
import org.wallaroo.spark.account.MonitorNumbers;
import org.wallaroo.spark.engine.Engine;
import org.wallaroo.spark.journal.JournalHead;
import org.wallaroo.spark.query.Settings;

/** The calls of the driver program in Python for a query in real-time mode: make, observe and end it. */
public final class RealTime {
    private static final int ONLY_KEY = 0;

    private RealTime() {}

    /**
     * Returns a plan as one streaming dataset, whose rows report its progress.
     *
     * @param session in which the query will run
     * @param text settings, see {@link Settings}
     */
    public static Dataset<Row> lower(SparkSession session, String text) {
        Settings settings = Settings.of(text);
        Dataset<byte[]> rows = session.readStream()
                .format(JournalSource.class.getName())
                .option("settings", text)
                .load()
                .as(Encoders.BINARY())
                .coalesce(1); // with one shuffle partition there is no shuffle: a batch is one task
        if (settings.levels().size() > 1) {
            rows = rows.groupByKey((MapFunction<byte[], Integer>) row -> ONLY_KEY, Encoders.INT())
                    .transformWithState(new StateKeeper(), TimeMode.None(), OutputMode.Update(), Encoders.BINARY());
        }
        return rows.toDF("barrier");
    }

    /** Returns the name of the sink's format for Spark. */
    public static String sinkFormat() {
        return BatchSink.class.getName();
    }

    /**
     * Returns six numbers, which a driver needs ten times a second. The first is 1 if the query is active, the second
     * is 1 if it has begun to read the journal. The third is the number of messages whose output is all in the outbox,
     * the fourth the last batch that Spark has reported; both are -1 before the first one. The fifth is a count of the
     * changes of {@link #numbers}, the sixth the id of the last visit in these numbers (0 before the first).
     *
     * @param query that was started
     * @param text settings of the query
     */
    public static String look(StreamingQuery query, String text) {
        StreamingQueryProgress last = query.lastProgress();
        long batch = last == null ? -1 : last.batchId();
        int isActive = query.isActive() ? 1 : 0;
        MonitorNumbers numbers = MonitorNumbers.of(text);
        return isActive + " " + (numbers.isReading() ? 1 : 0) + " " + numbers.messages() + " " + batch
                + " " + numbers.changes() + " " + numbers.lastVisit();
    }

    /**
     * Returns the counts of a query's sources, steps and sinks, as JSON with these fields. {@code offset} is a place in
     * the journal: the output of all input before it is in the outbox. {@code steps} has messages in and out, dead
     * letters, and messages that windows dropped, by path. {@code stores} has keys and bytes by stage and bucket.
     * {@code visits} has keys and failed keys by id of the visit, for the latest visits before the offset {@code
     * barrier}. {@code times} has the messages since the last call, by kind of latency and by milliseconds.
     *
     * @param text settings of the query
     */
    public static String numbers(String text) {
        return MonitorNumbers.of(text).take();
    }

    /**
     * Ends the running batch of a query as soon as it has a barrier, because the gateway waits for its commit.
     *
     * @param text settings of the query
     */
    public static void awaitBatch(String text) {
        Engine.guard(Settings.of(text)).awaitBatch();
    }

    /**
     * Ends the engine and the running batch of a query now, so that their work is committed.
     *
     * @param text settings of the query
     */
    public static void endBatches(String text) {
        JournalHead.endBatches(text);
    }

    /**
     * Returns the offset at which a query's engine has ended: a commit of this offset includes all its work. Returns -1
     * if the engine has not ended, or no batch has received its last barrier yet.
     *
     * @param text settings of the query
     */
    public static long end(String text) {
        return Engine.guard(Settings.of(text)).end();
    }
}
