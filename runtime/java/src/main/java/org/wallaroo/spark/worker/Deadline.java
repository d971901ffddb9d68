package org.wallaroo.spark.worker;

/** Computes for how long the calls of a task may make no progress. */
public final class Deadline {
    private final long milliseconds;
    private long slowest; // the longest pause of a call that went on later

    public Deadline(long milliseconds) {
        this.milliseconds = milliseconds;
    }

    /** Returns the time for which a worker may read, write, or wait for another call. */
    long whole() {
        return milliseconds;
    }

    /** Returns the time that a message of a call may take. */
    long of(Quarantine quarantine) {
        return quarantine.milliseconds(milliseconds, slowest);
    }

    /** Takes note of the length of a pause after which a call has made progress. */
    void progressed(long waited) {
        slowest = Math.max(slowest, waited);
    }
}
