package org.wallaroo.spark.microbatch;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;

/**
 * Closes a resource of a task, e.g. streams to a worker, when it is no longer needed, at the latest when the task ends.
 *
 * <p>A task may run many partitions, and all epochs of a continuous query. A listener of Spark for each resource would
 * keep closed resources in memory until the task ends.
 */
final class TaskEnd {
    private static final Map<Long, Set<TaskEnd>> OPEN = new ConcurrentHashMap<>(); // by attempt

    private final Runnable close;
    private final Set<TaskEnd> open;

    private TaskEnd(Runnable close, Set<TaskEnd> open) {
        this.close = close;
        this.open = open;
    }

    /** Registers the action that closes a resource of the task that runs here. */
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

    /** Closes the resource now, unless it is closed. */
    void close() {
        if (open.remove(this)) {
            close.run();
        }
    }
}
