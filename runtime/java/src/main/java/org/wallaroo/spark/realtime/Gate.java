package org.wallaroo.spark.realtime;

import java.util.List;
import java.util.function.BiFunction;

/**
 * Lets one attempt of a task at a time call the engine of a query, and chooses the engine.
 *
 * <p>Spark numbers attempts in their order. What an older one calls when a newer one has begun is refused: its executor
 * may be lost to Spark and run on. No engine serves two attempts at one batch: the first may have taken what the second
 * one would miss.
 */
final class Gate {
    private static final Attempt NOBODY = new Attempt("", -1, -1, -1);

    private final BiFunction<JournalOffset, Attempt, Served> engines;
    private Attempt current = NOBODY;
    private volatile Served engine;
    private boolean isStopped;

    /** What a gate knows of an engine. */
    interface Served {
        Handover handover();

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
     * Makes a gate.
     *
     * @param engines begins an engine at an offset, for the attempt that came first to it
     */
    Gate(BiFunction<JournalOffset, Attempt, Served> engines) {
        this.engines = engines;
    }

    /** Returns the calls of an attempt. */
    EngineCalls calls(long attempt) {
        return new Calls(attempt);
    }

    /** Returns what {@link RealTime#end} does. */
    long end() {
        Served found = engine;
        return found == null ? -1 : found.handover().endOffset();
    }

    /** Ends the engine of a query that has stopped: no task of it gets another one. */
    synchronized void stop() {
        isStopped = true;
        closeEngine();
    }

    private synchronized void begin(JournalOffset start, Attempt attempt) {
        if (isStopped) { // nobody would end the engine
            throw new IllegalStateException("the query has stopped");
        }
        if (attempt.attempt() <= current.attempt()) {
            throw Handover.refused(attempt.attempt(), current.attempt());
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

    private synchronized void failed(long attempt) {
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

    private final class Calls implements EngineCalls {
        private final long attempt;

        private Calls(long attempt) {
            this.attempt = attempt;
        }

        @Override
        public void begin(JournalOffset start, Attempt begun) {
            Gate.this.begin(start, begun);
        }

        @Override
        public Work next(long nanoseconds) throws InterruptedException {
            return served().handover().next(attempt, nanoseconds);
        }

        @Override
        public void stored() {
            Served found = served();
            found.stored(found.handover().stored(attempt));
        }

        @Override
        public void answer(List<byte[]> found) {
            served().handover().answer(attempt, found);
        }

        @Override
        public void failed() {
            Gate.this.failed(attempt);
        }
    }
}
