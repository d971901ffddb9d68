package org.wallaroo.spark.worker;

/** The time that the calls of a task may make no progress. */
public final class Deadline {
    private final long milliseconds;
    private long slowest; // that a call made no progress before it made some

    public Deadline(long milliseconds) {
        this.milliseconds = milliseconds;
    }

    /** Returns the time that a worker may read, write, or wait for another call. */
    long whole() {
        return milliseconds;
    }

    /** Returns the time that a message of a call may take. */
    long of(Quarantine quarantine) {
        return quarantine.milliseconds(milliseconds, slowest);
    }

    /** Takes note of the time that a call made no progress before it made some. */
    void progressed(long waited) {
        slowest = Math.max(slowest, waited);
    }
}
