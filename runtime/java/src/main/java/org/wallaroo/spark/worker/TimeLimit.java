package org.wallaroo.spark.worker;

/** The time for which a task's calls to a worker may make no progress, before {@link WorkerStream} ends the process. */
public final class TimeLimit {
    private final long milliseconds;
    private long slowest; // the longest pause after which a call still made progress

    public TimeLimit(long milliseconds) {
        this.milliseconds = milliseconds;
    }

    /** Returns the milliseconds that a worker may need for work outside of messages, or to wait for another call. */
    long ofCall() {
        return milliseconds;
    }

    /** Returns the milliseconds that one message of a call may take: fewer if messages of the call have hung. */
    long ofMessage(Quarantine quarantine) {
        return quarantine.milliseconds(milliseconds, slowest);
    }

    /** Notes a pause (ms) after which a call made progress: {@link #ofMessage} then permits such pauses. */
    void progressed(long waited) {
        slowest = Math.max(slowest, waited);
    }
}
