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
 * Connects the engine of a query, which works all the time, with the task of the running batch, which stores states.
 *
 * <p>The engine adds barriers. The task gets a barrier when the egress has acknowledged all deliveries before it. The
 * engine also makes requests to Spark's store, which a task answers; if no task runs, the next task answers.
 */
public final class BarrierQueue {
    private static final int ROOM = 8; // number of barriers that may wait

    private final Deque<Barrier> barriers = new ArrayDeque<>();
    private StoreRequest request; // request without an answer, whether a task has taken it or not
    private List<byte[]> answer;
    private Barrier given; // barrier that the task has taken and not yet stored
    private JournalRow.Place last; // place of the barrier that a task has taken last
    private long acknowledged;
    private long attempt; // attempt of the task that may call
    private long begun; // offset with which the running batch has begun
    private boolean isBatchAwaited; // whether the running batch ends as soon as it has a barrier
    private boolean hasEnded;
    private RuntimeException ending; // error with which the query ends when all earlier barriers are committed
    private RuntimeException failure;

    public BarrierQueue(JournalOffset start, long attempt) {
        last = new JournalRow.Place(start.offset(), start.messages(), -1);
        begun = start.offset();
        this.attempt = attempt;
    }

    /** Begins a batch where the previous batch has ended. From now on only this attempt of a task may call. */
    public synchronized void begin(long newAttempt) {
        attempt = newAttempt;
        given = null;
        begun = last.offset();
        isBatchAwaited = false;
        notifyAll(); // a waiting call of the attempt before is refused
    }

    /** Ends the running batch as soon as it has a barrier, because the gateway waits for its commit. */
    public synchronized void awaitBatch() {
        isBatchAwaited = true;
        notifyAll();
    }

    /** Says whether a batch may begin at an offset: a task has taken the barrier there, and has stored its changes. */
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

    /** Returns the error for an attempt that calls after another attempt has begun. */
    public static IllegalStateException refused(long attempt, long current) {
        return new IllegalStateException("task attempt " + attempt + " is refused: attempt " + current + " has begun");
    }

    /** Adds a barrier. Waits while too many barriers wait for a task. */
    public synchronized void put(Barrier barrier) {
        barriers.add(barrier);
        notifyAll();
        while (barriers.size() > ROOM) {
            sleep();
        }
    }

    /** Waits until a task with Spark's store has answered a request, and returns the answer. */
    synchronized List<byte[]> ask(StoreRequest asked) {
        request = asked;
        answer = null;
        notifyAll();
        while (answer == null) {
            sleep();
        }
        return answer;
    }

    /** Gives the engine the answer to its request. */
    public synchronized void answer(long caller, List<byte[]> found) {
        check(caller);
        if (request == null) {
            throw new IllegalStateException("a task answers what nobody has asked");
        }
        request = null;
        answer = found;
        notifyAll();
    }

    /** Records the number of deliveries that the egress has acknowledged. */
    public synchronized void acknowledge(long deliveries) {
        acknowledged = deliveries;
        notifyAll();
    }

    /** Records that no barrier follows, since the engine has ended. */
    public synchronized void end() {
        hasEnded = true;
        notifyAll();
    }

    /** Records that no barrier follows. An error ends the query as soon as the earlier barriers are committed. */
    public synchronized void endWith(RuntimeException error) {
        ending = error;
        end();
    }

    /** Lets the waiting task, or the next one, fail with an error of the engine. */
    public synchronized void fail(RuntimeException error) {
        failure = failure == null ? error : failure;
        notifyAll();
    }

    /** Returns the offset of the last barrier if tasks have taken all barriers and none follows; otherwise -1. */
    public synchronized long endOffset() {
        return hasEnded && barriers.isEmpty() ? last.offset() : -1;
    }

    /** Returns the place in the journal of the barrier that a task has taken last. */
    public synchronized JournalRow.Place last() {
        return last;
    }

    /**
     * Waits for a limited time until there is work for the task, and returns this work.
     *
     * @param caller attempt of the task
     * @param nanoseconds how long to wait
     * @return the work; null if no work came in time, or the batch is awaited; {@link Work#OVER} if no work will come
     * @throws RuntimeException if the engine has failed, or if an error ends the query and this batch has no barrier
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
            if (left <= 0 || isBatchAwaited && last.offset() > begun) {
                return null;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
    }

    /** Records that the changes of the barrier taken last are in Spark's store, and returns these changes. */
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
