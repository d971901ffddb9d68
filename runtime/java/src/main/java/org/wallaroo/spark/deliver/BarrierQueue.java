package org.wallaroo.spark.deliver;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.wallaroo.spark.bucket.Changes;
import org.wallaroo.spark.bucket.StoreRequest;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.message.JournalRow;

/**
 * Where the engine, which never stops, and the task of the running batch meet.
 *
 * <p>The engine gives barriers; the task gets each when the egress has acknowledged all deliveries before it. The engine
 * asks for what Spark's store has; a task answers, the next one when none runs.
 */
public final class BarrierQueue {
    private static final int ROOM = 8; // barriers

    private final Deque<Barrier> barriers = new ArrayDeque<>();
    private StoreRequest request; // until it is answered, also when a task has taken it
    private List<byte[]> answer;
    private Barrier given; // the task has it, and has not stored it
    private JournalRow.Place last; // of the barrier that was given last
    private long acknowledged;
    private long attempt; // of the task that may call
    private long begun; // offset with which the running batch has begun
    private boolean hasEnded;
    private RuntimeException ending; // what the query ends with when all before it is committed
    private RuntimeException failure;

    public BarrierQueue(JournalOffset start, long attempt) {
        last = new JournalRow.Place(start.offset(), start.messages(), -1);
        begun = start.offset();
        this.attempt = attempt;
    }

    /** Takes note that a batch goes on where the one before it has ended, with another attempt of a task. */
    public synchronized void begin(long newAttempt) {
        attempt = newAttempt;
        given = null;
        begun = last.offset();
        notifyAll(); // who still waits for the attempt before is refused
    }

    /** Says whether Spark's store has all barriers that were given when a batch begins at an offset. */
    public synchronized boolean goesOnFrom(long offset) {
        return failure == null && last.offset() == offset && isGivenStored();
    }

    private boolean isGivenStored() {
        return given == null || given.changes().isEmpty();
    }

    private void check(long caller) {
        if (caller != attempt) {
            throw refused(caller, attempt);
        }
    }

    /** Returns the error of an attempt that calls when another one has begun. */
    public static IllegalStateException refused(long attempt, long current) {
        return new IllegalStateException("task attempt " + attempt + " is refused: attempt " + current + " has begun");
    }

    /** Gives a barrier; waits while tasks are far back. */
    public synchronized void put(Barrier barrier) {
        barriers.add(barrier);
        notifyAll();
        while (barriers.size() > ROOM) {
            sleep();
        }
    }

    /** Returns the answer of a task that has Spark's store. */
    synchronized List<byte[]> ask(StoreRequest asked) {
        request = asked;
        answer = null;
        notifyAll();
        while (answer == null) {
            sleep();
        }
        return answer;
    }

    /** Gives the engine the answers to its questions. */
    public synchronized void answer(long caller, List<byte[]> found) {
        check(caller);
        if (request == null) {
            throw new IllegalStateException("a task answers what nobody has asked");
        }
        request = null;
        answer = found;
        notifyAll();
    }

    /** Takes note that the egress has so many deliveries. */
    public synchronized void acknowledge(long deliveries) {
        acknowledged = deliveries;
        notifyAll();
    }

    /** Takes note that no barrier follows. */
    public synchronized void end() {
        hasEnded = true;
        notifyAll();
    }

    /** Takes note that no barrier follows, and that the query is to end with an error then: not this batch, but the next. */
    public synchronized void endWith(RuntimeException error) {
        ending = error;
        end();
    }

    /** Lets the task fail. */
    public synchronized void fail(RuntimeException error) {
        failure = failure == null ? error : failure;
        notifyAll();
    }

    /** Returns the place in the journal of the last barrier when tasks have got all and no more follows; else -1. */
    public synchronized long endOffset() {
        return hasEnded && barriers.isEmpty() ? last.offset() : -1;
    }

    /** Returns the place of the barrier that was given last. */
    public synchronized JournalRow.Place last() {
        return last;
    }

    /**
     * Waits until there is something for the task.
     *
     * @param caller attempt of the task
     * @param nanoseconds how long
     * @return null: nothing came in time; {@link Work#OVER}: nothing will come any more
     * @throws RuntimeException why the engine has failed; why the query ends, in a batch that would have nothing
     */
    public synchronized Work next(long caller, long nanoseconds) throws InterruptedException {
        long until = System.nanoTime() + nanoseconds;
        while (true) {
            check(caller);
            if (failure != null) {
                throw failure;
            }
            if (!isGivenStored()) {
                throw new IllegalStateException("the changes of barrier " + last.offset() + " were not stored");
            }
            Barrier next = barriers.peekFirst();
            if (next != null && next.deliveries() <= acknowledged) {
                given = barriers.removeFirst();
                last = given.place();
                notifyAll();
                return new Work(given, request);
            }
            if (request != null) {
                return new Work(null, request);
            }
            if (hasEnded && next == null) {
                if (ending != null && last.offset() == begun) {
                    throw ending;
                }
                return Work.OVER;
            }
            long left = until - System.nanoTime();
            if (left <= 0) {
                return null;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
    }

    /** Returns the changes that Spark's store has now: those of the barrier that was given last. */
    public synchronized List<Changes> stored(long caller) {
        check(caller);
        List<Changes> changes = given == null ? List.of() : given.changes();
        given = null;
        return changes;
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
