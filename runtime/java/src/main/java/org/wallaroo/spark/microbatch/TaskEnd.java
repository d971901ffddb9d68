package org.wallaroo.spark.microbatch;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;

/**
 * Closes a thing when a task needs it no longer, at the latest at the end of the task.
 *
 * <p>A task may run many partitions, and all epochs of a continuous query. A listener of Spark for each of them would
 * keep what is closed until the task ends.
 */
final class TaskEnd {
    private static final Map<Long, Set<TaskEnd>> OPEN = new ConcurrentHashMap<>(); // by attempt

    private final Runnable close;
    private final Set<TaskEnd> open;

    private TaskEnd(Runnable close, Set<TaskEnd> open) {
        this.close = close;
        this.open = open;
    }

    /** Registers what the task that runs here must close. */
    static synchronized TaskEnd of(Runnable close) {
        TaskContext context = TaskContext.get();
        long attempt = context.taskAttemptId();
        boolean isFirst = !OPEN.containsKey(attempt);
        TaskEnd made = new TaskEnd(close, OPEN.computeIfAbsent(attempt, number -> ConcurrentHashMap.newKeySet()));
        made.open.add(made);
        if (isFirst) {
            context.addTaskCompletionListener(ended -> {
                OPEN.remove(attempt).forEach(TaskEnd::close);
            });
        }
        return made;
    }

    /** Closes the thing, unless it is closed. */
    void close() {
        if (open.remove(this)) {
            close.run();
        }
    }
}
