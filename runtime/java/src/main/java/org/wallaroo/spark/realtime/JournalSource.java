package org.wallaroo.spark.realtime;

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.wallaroo.spark.journal.JournalFormat;
import org.wallaroo.spark.query.Settings;

/** Spark's source in real-time mode: rows are offsets of barriers. The option {@code settings} has {@link Settings}. */
public final class JournalSource extends JournalFormat {
    @Override
    protected MicroBatchStream stream(CaseInsensitiveStringMap options) {
        return new JournalStream(Settings.of(options.get("settings")));
    }
}
