package org.wallaroo.spark.deliver;

import org.wallaroo.spark.bucket.StoreRequest;

/**
 * The next work that the engine has for a task, since only tasks have Spark's store.
 *
 * @param barrier whose changes must be stored; null if there is none
 * @param request to answer after that; null if there is none
 */
public record Work(Barrier barrier, StoreRequest request) {
    /** The engine has ended, and no work will come. */
    public static final Work OVER = new Work(null, null);
}
