package org.wallaroo.spark.realtime;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.query.OperatorFailure;
import org.wallaroo.spark.query.Settings;

/**
 * Checks that Spark commits only the offset of a barrier whose changes are in Spark's store.
 *
 * <p>The reader of a task returns a row for a barrier when every output before it is acknowledged. The operator with
 * states passes the row on when it has stored the changes. The sink's commit brings the offset of the last row to the
 * driver, and Spark asks the source for the offset of its reader. Both offsets must be the same.
 */
final class BatchEnd {
    private static final Map<String, Long> COVERED = new ConcurrentHashMap<>();
    /** Value in place of the last row's offset, if a batch has no rows of the source. */
    static final long NOTHING = -1;

    private BatchEnd() {}

    /** Records that a batch of a query begins. */
    static void begin(Settings settings) {
        COVERED.remove(settings.text());
    }

    /** Records the offset of the last barrier whose row the sink has received. The changes are stored by then. */
    static void cover(String settings, long offset) {
        COVERED.put(settings, offset);
    }

    /**
     * Compares the offset of the last row with the offset that Spark is about to commit.
     *
     * @throws OperatorFailure R756 if they differ
     */
    static void check(Settings settings, JournalOffset start, JournalOffset end) {
        Long covered = COVERED.get(settings.text());
        long expected = covered == null ? Long.MIN_VALUE : covered == NOTHING ? start.offset() : covered;
        if (expected != end.offset()) {
            throw OperatorFailure.of("R756", "start", start.offset(), "end", end.offset(),
                    "covered", covered == null ? "no offset" : expected);
        }
    }
}
