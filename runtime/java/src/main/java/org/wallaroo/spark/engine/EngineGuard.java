package org.wallaroo.spark.engine;

import java.util.List;
import java.util.function.BiFunction;
import org.wallaroo.spark.bucket.Changes;
import org.wallaroo.spark.deliver.BarrierQueue;
import org.wallaroo.spark.deliver.Work;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.query.Attempt;

/**
 * Lets one attempt of a task at a time call the engine of a query, and chooses the engine.
 *
 * <p>Spark numbers attempts in their order. Calls of an older attempt are refused when a newer one has begun: on a local
 * master, too, Spark repeats a task whose heartbeats were late, while the first attempt runs on. No engine serves two
 * attempts at one batch: the first may have taken what the second one would miss.
 */
public final class EngineGuard {
    private static final Attempt NOBODY = new Attempt("", -1, -1, -1);

    private final BiFunction<JournalOffset, Attempt, Served> engines;
    private Attempt current = NOBODY;
    private volatile Served engine;
    private boolean isStopped;

    /** A guard's record of an engine. */
    interface Served {
        BarrierQueue queue();

        /** Takes note that Spark's store has changes. */
        void stored(List<Changes> changes);

        /** Says whether it can go on from where the batch before has ended, and a task begins the next one. */
        boolean goesOnFrom(JournalOffset start);

        /** Serves the attempt that has begun the next batch: the one before is committed. */
        void goOn(long attempt);

        /** Ends it; waits for that, but not without limit. */
        void close();
    }

    /**
     * Makes a guard.
     *
     * @param engines begins an engine at an offset, for the attempt that came first to it
     */
    EngineGuard(BiFunction<JournalOffset, Attempt, Served> engines) {
        this.engines = engines;
    }

    /** Returns the offset with which all is committed that the engine has done; -1: it has not ended. */
    public long end() {
        Served found = engine;
        return found == null ? -1 : found.queue().endOffset();
    }

    /** Ends the engine of a query that has stopped: no task of it gets another one. */
    public synchronized void stop() {
        isStopped = true;
        closeEngine();
    }

    /** Begins a batch at an offset, with the engine that goes on from there or with a new one. */
    synchronized void begin(JournalOffset start, Attempt attempt) {
        if (isStopped) { // nobody would end the engine
            throw new IllegalStateException("the query has stopped");
        }
        if (attempt.attempt() <= current.attempt()) {
            throw BarrierQueue.refused(attempt.attempt(), current.attempt());
        }
        boolean isAgain = attempt.batch() == current.batch();
        current = attempt;
        if (!isAgain && engine != null && engine.goesOnFrom(start)) {
            engine.goOn(attempt.attempt());
            return;
        }
        closeEngine();
        engine = engines.apply(start, attempt);
    }

    private Served served() {
        Served found = engine;
        if (found == null) {
            throw new IllegalStateException("the engine has ended");
        }
        return found;
    }

    /**
     * Waits until there is something for the task.
     *
     * @param attempt of the task
     * @param nanoseconds how long at most
     * @return null: nothing came in time; {@link Work#OVER}: nothing will come any more
     */
    Work next(long attempt, long nanoseconds) throws InterruptedException {
        return served().queue().next(attempt, nanoseconds);
    }

    /** Takes note that the changes of the barrier that came last are in Spark's store. */
    void stored(long attempt) {
        Served found = served();
        found.stored(found.queue().stored(attempt));
    }

    /** Answers the request that came last. */
    void answer(long attempt, List<byte[]> found) {
        served().queue().answer(attempt, found);
    }

    /** Takes note that an attempt fails: its engine ends, unless another attempt has begun. */
    synchronized void failed(long attempt) {
        if (attempt == current.attempt()) {
            closeEngine();
        }
    }

    private void closeEngine() {
        if (engine != null) {
            engine.close();
        }
        engine = null;
    }
}
