package org.wallaroo.spark.realtime;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

/**
 * Checks that no offset passes but that of a barrier whose changes are in Spark's store.
 *
 * <p>The reader of a task gives a row for a barrier when every output before it is acknowledged; the state's operator
 * passes the row on when it has stored the changes; the sink's commit brings the offset of the last row to the driver.
 * Spark asks the source for the offset of its reader. Both must be the same.
 */
final class BatchEnd {
    private static final Map<String, Long> COVERED = new ConcurrentHashMap<>();
    /** Offset of the end of a batch without any row of the source. */
    static final long NOTHING = -1;

    private BatchEnd() {}

    /** A batch of a query begins. */
    static void begin(Settings settings) {
        COVERED.remove(settings.text());
    }

    /** The sink of a query has the row of a barrier, which came after its changes were stored. */
    static void cover(String settings, long offset) {
        COVERED.put(settings, offset);
    }

    /**
     * Compares the covered offsets with those that Spark is about to commit.
     *
     * @throws OperatorFailure R756, it is not the same
     */
    static void check(Settings settings, JournalOffset start, JournalOffset end) {
        Long covered = COVERED.get(settings.text());
        long expected = covered == null ? Long.MIN_VALUE : covered == NOTHING ? start.offset() : covered;
        if (expected != end.offset()) {
            throw OperatorFailure.of("R756", "start", start.offset(), "end", end.offset(),
                    "covered", covered == null ? "nothing" : expected);
        }
    }
}
