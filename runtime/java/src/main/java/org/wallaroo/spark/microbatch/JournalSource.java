package org.wallaroo.spark.microbatch;

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.wallaroo.spark.journal.JournalFormat;
import org.wallaroo.spark.journal.JournalPlace;
import org.wallaroo.spark.query.Json;

/** Spark's source over a journal in micro-batches. Each row names a range of the journal, which a task then reads. */
public final class JournalSource extends JournalFormat {
    @Override
    protected MicroBatchStream stream(CaseInsensitiveStringMap options) {
        return new JournalStream(options.getInt("number", 0), JournalPlace.of(Json.parse(options.get("place"))),
                options.getLong("batch_bytes", 0), options.getInt("parts", 1), options.getLong("wait_ms", 0));
    }
}
