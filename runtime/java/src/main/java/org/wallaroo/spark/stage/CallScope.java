package org.wallaroo.spark.stage;

import java.util.List;
import java.util.stream.IntStream;

/**
 * The buckets of a stage that a task runs, and whether their worker calls end with the first frames or stay open.
 *
 * @param first bucket that the task runs
 * @param step from one bucket that the task runs to the next one
 * @param endsAtOnce whether a call ends with its first frames; otherwise the call stays open until the next flush
 */
public record CallScope(int first, int step, boolean endsAtOnce) {
    /** The scope of real-time mode: all buckets, with calls that stay open until the next flush. */
    static final CallScope OPEN = new CallScope(0, 1, false);

    /** Returns the numbers of the buckets that the task runs if the stage has {@code count} buckets. */
    public List<Integer> bucketsOf(int count) {
        return IntStream.iterate(first, bucket -> bucket < count, bucket -> bucket + step).boxed().toList();
    }
}
