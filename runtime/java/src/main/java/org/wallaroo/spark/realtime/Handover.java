package org.wallaroo.spark.realtime;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Where the engine, which never stops, and the task of the running batch meet.
 *
 * <p>The engine gives barriers; the task gets each when the egress has acknowledged all deliveries before it. The engine
 * asks for what Spark's store has; a task answers, the next one when none runs.
 */
final class Handover {
    private static final int ROOM = 8; // barriers

    private final Deque<Barrier> barriers = new ArrayDeque<>();
    private Function<BucketStore, ?> question;
    private Object answer;
    private Barrier given; // the task has it, and has not stored it
    private Parcel.Place last; // of the barrier that was given last
    private long acknowledged;
    private long begun; // offset with which the running batch has begun
    private boolean hasEnded;
    private RuntimeException ending; // what the query ends with when all before it is committed
    private RuntimeException failure;

    Handover(JournalOffset start) {
        last = new Parcel.Place(start.offset(), start.messages(), -1);
        begun = start.offset();
    }

    /** Takes note that a batch goes on where the one before it has ended. */
    synchronized void begin() {
        begun = last.offset();
    }

    /** Gives a barrier; waits while tasks are far back. */
    synchronized void put(Barrier barrier) {
        barriers.add(barrier);
        notifyAll();
        while (barriers.size() > ROOM) {
            sleep();
        }
    }

    /** Returns what a task answers that has Spark's store. */
    @SuppressWarnings("unchecked")
    synchronized <T> T ask(Function<BucketStore, T> asked) {
        question = asked;
        answer = null;
        notifyAll();
        while (answer == null) {
            sleep();
        }
        return (T) answer;
    }

    /** Takes note that the egress has so many deliveries. */
    synchronized void acknowledge(long deliveries) {
        acknowledged = deliveries;
        notifyAll();
    }

    /** Takes note that no barrier follows. */
    synchronized void end() {
        hasEnded = true;
        notifyAll();
    }

    /** Takes note that no barrier follows, and that the query is to end with an error then: not this batch, but the next. */
    synchronized void endWith(RuntimeException error) {
        ending = error;
        end();
    }

    /** Lets the task fail. */
    synchronized void fail(RuntimeException error) {
        failure = failure == null ? error : failure;
        notifyAll();
    }

    /** Returns the place in the journal of the last barrier when tasks have got all and no more follows; else -1. */
    synchronized long endOffset() {
        return hasEnded && barriers.isEmpty() ? last.offset() : -1;
    }

    synchronized boolean hasFailed() {
        return failure != null;
    }

    /** Returns the place of the barrier that was given last. */
    synchronized Parcel.Place last() {
        return last;
    }

    /**
     * Waits until there is something for the task.
     *
     * @param nanoseconds how long
     * @return whether there is; false: not in time, or nothing will come any more
     * @throws RuntimeException why the engine has failed; why the query ends, in a batch that would have nothing
     */
    synchronized boolean await(long nanoseconds) throws InterruptedException {
        long until = System.nanoTime() + nanoseconds;
        while (true) {
            if (failure != null) {
                throw failure;
            }
            Barrier next = barriers.peekFirst();
            if (next != null && next.deliveries() <= acknowledged) {
                given = barriers.removeFirst();
                last = given.place();
                notifyAll();
                return true;
            }
            if (question != null) {
                return true;
            }
            if (hasEnded && next == null && ending != null && last.offset() == begun) {
                throw ending;
            }
            long left = until - System.nanoTime();
            if (left <= 0 || hasEnded && next == null) {
                return false;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
    }

    /**
     * Does what the engine wants of Spark's store, in the task: stores the changes of the barrier that was given, and
     * answers. Not under the lock, which others take in the path of messages.
     *
     * @param store Spark's
     * @param stored gets the changes that the store has now
     */
    void serve(BucketStore store, Consumer<List<Changes>> stored) {
        Barrier done;
        Function<BucketStore, ?> asked;
        synchronized (this) {
            done = given;
            given = null;
            asked = question;
            question = null;
        }
        if (done != null) {
            done.changes().forEach(
                    each -> store.store(each.bucket(), each.before(), each.after(), each.entries()));
            stored.accept(done.changes());
        }
        if (asked != null) {
            Object found = asked.apply(store);
            synchronized (this) {
                answer = found;
                notifyAll();
            }
        }
    }

    private void sleep() {
        try {
            wait();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the engine was interrupted", error);
        }
    }
}
