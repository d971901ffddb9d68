package org.wallaroo.spark.realtime;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Checks that no offset passes that open calls or unacknowledged outputs do not cover.
 *
 * <p>The stateless level says at the end of its input how far it has come; the state level passes that on only when
 * every call is closed and every change is in the store; the sink only when every output before it is acknowledged, and
 * its writer's commit brings it to the driver. Spark asks the source for the offset of its reader. Both must be the same.
 */
final class BatchEnd {
    private static final Map<String, Long> COVERED = new ConcurrentHashMap<>();
    private static final Map<String, Long> BEGUN = new ConcurrentHashMap<>();
    /** Offset of the end of a batch without any row of the source. */
    static final long NOTHING = -1;

    private BatchEnd() {}

    /** A batch of a query begins. */
    static void begin(Settings settings, JournalOffset start) {
        COVERED.remove(settings.text());
        BEGUN.put(settings.text(), start.offset());
    }

    /** Returns the offset where the running batch of a query begins; tasks run in the driver's virtual machine. */
    static long begun(Settings settings) {
        Long offset = BEGUN.get(settings.text());
        if (offset == null) {
            throw OperatorFailure.of("I901", "reason", "a task writes, and no batch has begun");
        }
        return offset;
    }

    /** The sink of a query has all outputs of a batch up to an offset, after all its changes. */
    static void cover(String settings, long offset) {
        COVERED.put(settings, offset);
    }

    /**
     * Compares what is covered with what Spark is about to commit.
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
