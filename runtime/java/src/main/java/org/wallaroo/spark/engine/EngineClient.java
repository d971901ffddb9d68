package org.wallaroo.spark.engine;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.Changes;
import org.wallaroo.spark.deliver.Work;
import org.wallaroo.spark.journal.JournalOffset;
import org.wallaroo.spark.message.JournalRow;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Settings;

/**
 * The calls of a task's attempt to the engine of its query. Spark's source waits here until the engine has work for the
 * task, and Spark's state operator does this work.
 */
public final class EngineClient {
    private static final Map<Long, EngineClient> RUNNING = new ConcurrentHashMap<>(); // by attempt

    private final EngineGuard guard;
    private final long attempt;
    private Work work;

    EngineClient(EngineGuard guard, long attempt) {
        this.guard = guard;
        this.attempt = attempt;
    }

    /**
     * Begins the batch of the task that runs in the calling thread.
     *
     * @param settings of the query
     * @param start offset at which the batch begins
     */
    public static EngineClient begin(Settings settings, JournalOffset start) {
        TaskContext context = TaskContext.get();
        Attempt attempt = Attempt.current();
        EngineGuard guard = Engine.guard(settings);
        long number = attempt.attempt();
        context.addTaskFailureListener((failed, error) -> {
            guard.failed(number);
        });
        EngineClient made = new EngineClient(guard, number);
        RUNNING.put(number, made);
        context.addTaskCompletionListener(ended -> {
            RUNNING.remove(number);
        });
        guard.begin(start, attempt);
        return made;
    }

    /** Returns the client of the task that runs in the calling thread. */
    public static EngineClient current() {
        return RUNNING.get(TaskContext.get().taskAttemptId());
    }

    /**
     * Waits until the engine has work.
     *
     * @param nanoseconds how long to wait
     * @return whether there is work; false if no work came in time, or no work will come
     */
    public boolean await(long nanoseconds) throws InterruptedException {
        Work found = guard.engine().queue().next(attempt, nanoseconds);
        work = found == Work.OVER ? null : found;
        return work != null;
    }

    /** Returns the place in the journal of the barrier that {@link #await} has received; null if it received none. */
    public JournalRow.Place reached() {
        return work.barrier() == null ? null : work.barrier().place();
    }

    /**
     * Does the work that {@link #await} has received, if any: stores the changes of states since the previous barrier,
     * then answers the request of the engine.
     */
    public void serve(BucketStore store) {
        Work found = work;
        work = null;
        if (found == null) {
            return;
        }
        if (found.barrier() != null) {
            for (Changes each : found.barrier().changes()) {
                store.store(each.bucket(), each.before(), each.after(), each.entries());
            }
            guard.stored(attempt);
        }
        if (found.request() != null) {
            guard.engine().queue().answer(attempt, found.request().answer(store));
        }
    }
}
