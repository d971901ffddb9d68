package org.wallaroo.spark.query;

import org.apache.spark.TaskContext;
import wallaroo.worker.v1.WorkerOuterClass.Opening;

/**
 * An attempt of one of Spark's tasks. Spark repeats a failed task in another attempt.
 *
 * @param query id of Spark's streaming query; number of the execution of any other query
 * @param batch number of the batch; 0 if the query has no batches
 * @param partition of the task
 * @param attempt Spark's id of the attempt
 */
public record Attempt(String query, long batch, int partition, long attempt) {
    /** Local property of Spark with the number of the batch, on the driver and in tasks. */
    public static final String BATCH = "streaming.sql.batchId";
    /** Local property with the id of the streaming query. */
    public static final String QUERY = "sql.streaming.queryId";
    /** Local property with the number of partitions of the stores of a streaming query, which its checkpoint keeps. */
    public static final String STORES = "spark.sql.streaming.internal.stateStore.partitions";

    /** Returns the attempt that the calling thread runs. */
    public static Attempt current() {
        TaskContext context = TaskContext.get();
        String batch = context.getLocalProperty(BATCH);
        String query = context.getLocalProperty(batch != null ? QUERY : "spark.sql.execution.id");
        return new Attempt(query == null ? "" : query, batch == null ? 0 : Long.parseLong(batch), context.partitionId(),
                context.taskAttemptId());
    }

    /** Returns the first message of a stream to a worker: the stage's message with the ids of this attempt. */
    public Opening opening(Opening stage) {
        return stage.toBuilder().setQuery(query).setBatch(batch).setPartition(partition).setAttempt(attempt).build();
    }
}
