package org.wallaroo.spark.stage;

import java.util.List;
import java.util.stream.IntStream;

/**
 * The buckets of a stage that a task runs, and the time at which their calls end.
 *
 * @param first bucket that the task runs
 * @param step from one bucket that the task runs to the next one
 * @param endsAtOnce whether a call ends with the frames that begin it; otherwise it is open until the next flush
 */
public record CallScope(int first, int step, boolean endsAtOnce) {
    /** All buckets, in calls that stay open. */
    static final CallScope OPEN = new CallScope(0, 1, false);

    /** Returns the buckets that the task runs, from a number of buckets. */
    public List<Integer> of(int buckets) {
        return IntStream.iterate(first, bucket -> bucket < buckets, bucket -> bucket + step).boxed().toList();
    }
}
