package org.wallaroo.spark.worker;

/** Computes for how long the calls of a task may make no progress. WorkerStream and Quarantine enforce it. */
public final class TimeLimit {
    private final long milliseconds;
    private long slowest; // the longest pause after which a call still made progress

    public TimeLimit(long milliseconds) {
        this.milliseconds = milliseconds;
    }

    /** Returns the time that a worker may need for work outside of messages, or to wait for another call. */
    long ofCall() {
        return milliseconds;
    }

    /** Returns the time that one message may take in the call that the quarantine belongs to. */
    long ofMessage(Quarantine quarantine) {
        return quarantine.milliseconds(milliseconds, slowest);
    }

    /** Records the length of a pause after which a call has made progress. */
    void progressed(long waited) {
        slowest = Math.max(slowest, waited);
    }
}
