package org.wallaroo.spark.realtime;

/**
 * What the engine has for a task.
 *
 * @param barrier whose changes are to be stored; null: none
 * @param question to be answered after that; null: none
 */
record Work(Barrier barrier, Question question) {
    /** The engine has ended: nothing comes any more. */
    static final Work OVER = new Work(null, null);
}
