package org.wallaroo.spark.microbatch;

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.wallaroo.spark.journal.JournalFormat;

/** The source of a clock's ticks in a user's own query. A row has the time of one tick. */
public final class TickSource extends JournalFormat {
    @Override
    protected MicroBatchStream stream(CaseInsensitiveStringMap options) {
        return new TickStream(options.getLong("interval_ms", 0));
    }
}
