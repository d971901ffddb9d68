package org.wallaroo.spark.worker;

/**
 * Measures for how long a call has made no progress. The caller looks at the timer from time to time.
 *
 * <p>If a look comes late, only a part of the time counts: an overloaded or suspended machine delays the worker, too.
 */
final class IdleTimer {
    private final long longest;
    private long looked;
    private long waited;

    /**
     * Starts the timer.
     *
     * @param now the current time in nanoseconds
     * @param longest time between two looks that counts at most
     */
    IdleTimer(long now, long longest) {
        this.longest = longest;
        this.looked = now;
    }

    /** Returns the time without progress until now. */
    long look(long now) {
        waited += Math.min(now - looked, longest);
        looked = now;
        return waited;
    }
}
