package org.wallaroo.spark.realtime;

import java.util.List;

/**
 * What one attempt of a task calls of the engine of its query: in the same virtual machine, or in that of the driver.
 *
 * <p>Each call fails when another attempt has begun since, or the engine has failed.
 */
interface EngineCalls {
    /** Begins a batch at an offset, with the engine that goes on from there or with a new one. */
    void begin(JournalOffset start, Attempt attempt);

    /**
     * Waits until there is something for the task.
     *
     * @param nanoseconds how long at most
     * @return null: nothing came in time; {@link Work#OVER}: nothing will come any more
     */
    Work next(long nanoseconds) throws InterruptedException;

    /** Says that the changes of the barrier that came last are in Spark's store. */
    void stored();

    /** Answers the question that came last. */
    void answer(List<byte[]> found);

    /** Says that the task fails; not whether that has come to the engine. */
    void failed();
}
