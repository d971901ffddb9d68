package org.wallaroo.spark.microbatch;

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.wallaroo.spark.journal.JournalFormat;

/**
 * Spark's source of ticks by the clock, for windows and timers in a PySpark job ({@code apply}). Each row is a tick.
 */
public final class TickSource extends JournalFormat {
    @Override
    protected MicroBatchStream stream(CaseInsensitiveStringMap options) {
        return new TickStream(options.getLong("interval_ms", 0));
    }
}
