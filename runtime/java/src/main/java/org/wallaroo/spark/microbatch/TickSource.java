package org.wallaroo.spark.microbatch;

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.wallaroo.spark.journal.JournalFormat;

/** The source of a clock's ticks in a user's own query. Each row is a tick. */
public final class TickSource extends JournalFormat {
    @Override
    protected MicroBatchStream stream(CaseInsensitiveStringMap options) {
        return new TickStream(options.getLong("interval_ms", 0));
    }
}
