package org.wallaroo.spark.worker;

/**
 * The time that a call has made no progress, as an occasional look can see it.
 *
 * <p>A look that comes late says little: what held it up, an overloaded or a stopped machine, has held up the worker, too.
 */
final class IdleTimer {
    private final long longest;
    private long looked;
    private long waited;

    /**
     * Begins now.
     *
     * @param now when it is, in nanoseconds
     * @param longest how much from one look to the next counts
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
