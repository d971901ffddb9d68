package org.wallaroo.spark.engine;

import java.util.List;
import java.util.function.BiFunction;
import org.wallaroo.spark.bucket.Changes;
import org.wallaroo.spark.deliver.BarrierQueue;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.query.Attempt;

/**
 * Lets only the latest attempt of a task call the engine of a query. If this engine cannot serve the next batch, begins
 * another one.
 *
 * <p>Spark numbers attempts in their order. The guard refuses calls of an older attempt when a newer attempt has begun.
 * Spark repeats a task whose heartbeats were late, also on a local master, while the first attempt still runs. No
 * engine serves two attempts at one batch, since the second would miss the work that the first has taken.
 */
public final class EngineGuard {
    private static final Attempt NOBODY = new Attempt("", -1, -1, -1);

    private final BiFunction<JournalOffset, Attempt, Served> engines;
    private Attempt current = NOBODY;
    private volatile Served engine;
    private boolean isStopped;

    /** The methods of an engine that tasks call through its guard. */
    interface Served {
        BarrierQueue queue();

        /** Records that changes of states are in Spark's store. */
        void stored(List<Changes> changes);

        /** Says whether the engine can serve the next batch, which begins at an offset. */
        boolean goesOnFrom(JournalOffset start);

        /** Serves an attempt that has begun the next batch. By then the previous batch is committed. */
        void goOn(long attempt);

        /** Ends the engine, and waits for its end for a limited time. */
        void close();
    }

    /**
     * Makes a guard.
     *
     * @param engines begins a new engine: gets the offset at which a batch begins, and the attempt that runs the batch
     */
    EngineGuard(BiFunction<JournalOffset, Attempt, Served> engines) {
        this.engines = engines;
    }

    /** Returns the offset at which the engine has ended; -1 before. A commit of it includes all work of the engine. */
    public long end() {
        Served found = engine;
        return found == null ? -1 : found.queue().endOffset();
    }

    /** Ends the running batch as soon as it has a barrier, because the gateway waits for its commit. */
    public void awaitBatch() {
        Served found = engine;
        if (found != null) {
            found.queue().awaitBatch();
        }
    }

    /** Ends the engine of a query that has stopped. No task of the query gets another engine. */
    public synchronized void stop() {
        isStopped = true;
        closeEngine();
    }

    /** Begins the engine of a query that has no committed batch. The first task comes later, and uses this engine. */
    public synchronized void beginNew(JournalOffset start, String query) {
        if (engine == null && current == NOBODY && !isStopped) {
            engine = engines.apply(start, new Attempt(query, 0, 0, 0));
        }
    }

    /** Begins a batch. The present engine serves the batch if it can go on from {@code start}, otherwise a new one. */
    synchronized void begin(JournalOffset start, Attempt attempt) {
        if (isStopped) { // nobody would end a new engine
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

    /**
     * Returns the running engine. Its queue serves only the present attempt of the task.
     *
     * @throws IllegalStateException if the engine has ended
     */
    Served engine() {
        Served found = engine;
        if (found == null) {
            throw new IllegalStateException("the engine has ended");
        }
        return found;
    }

    /** Records that the changes of the last barrier that the attempt has taken are in Spark's store. */
    void stored(long attempt) {
        Served found = engine();
        found.stored(found.queue().stored(attempt));
    }

    /** Ends the engine because an attempt has failed, unless another attempt has begun. */
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
