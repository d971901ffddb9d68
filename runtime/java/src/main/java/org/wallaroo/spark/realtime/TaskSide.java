package org.wallaroo.spark.realtime;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;

/**
 * What one attempt of a task has of the engine: Spark's source takes work of it, the operator with Spark's store does it.
 */
final class TaskSide {
    private static final Map<Long, TaskSide> RUNNING = new ConcurrentHashMap<>(); // by attempt

    private final Gate gate;
    private final long attempt;
    private Work work;

    TaskSide(Gate gate, long attempt) {
        this.gate = gate;
        this.attempt = attempt;
    }

    /**
     * Begins the batch of the task that runs here.
     *
     * @param settings of the query
     * @param start where the batch begins
     */
    static TaskSide begin(Settings settings, JournalOffset start) {
        TaskContext context = TaskContext.get();
        Attempt attempt = Attempt.current();
        Gate gate = Engine.gate(settings);
        long number = attempt.attempt();
        context.addTaskFailureListener((failed, error) -> {
            gate.failed(number);
        });
        TaskSide made = new TaskSide(gate, number);
        RUNNING.put(number, made);
        context.addTaskCompletionListener(ended -> {
            RUNNING.remove(number);
        });
        gate.begin(start, attempt);
        return made;
    }

    /** Returns that of the task that runs here. */
    static TaskSide current() {
        return RUNNING.get(TaskContext.get().taskAttemptId());
    }

    /**
     * Waits until the engine has something to do.
     *
     * @param nanoseconds how long
     * @return whether there is something; false: not in time, or nothing will come any more
     */
    boolean await(long nanoseconds) throws InterruptedException {
        Work found = gate.next(attempt, nanoseconds);
        work = found == Work.OVER ? null : found;
        return work != null;
    }

    /** Returns the place of the barrier that came with the last work; null: none came. */
    Parcel.Place reached() {
        return work.barrier() == null ? null : work.barrier().place();
    }

    /** Stores the changes of the barrier that came, then answers the question. */
    void serve(BucketStore store) {
        Work found = work;
        work = null;
        if (found == null) {
            return;
        }
        if (found.barrier() != null) {
            for (Changes each : found.barrier().changes()) {
                store.store(each.bucket(), each.before(), each.after(), each.entries());
            }
            gate.stored(attempt);
        }
        if (found.question() != null) {
            gate.answer(attempt, found.question().answer(store));
        }
    }
}
