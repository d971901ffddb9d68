package org.wallaroo.spark.deliver;

import org.wallaroo.spark.bucket.StoreRequest;

/**
 * The engine's work for a task.
 *
 * @param barrier whose changes are to be stored; null: none
 * @param request to be answered after that; null: none
 */
public record Work(Barrier barrier, StoreRequest request) {
    /** The engine has ended: nothing comes any more. */
    public static final Work OVER = new Work(null, null);
}
