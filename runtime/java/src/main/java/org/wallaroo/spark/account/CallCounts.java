package org.wallaroo.spark.account;

import java.util.List;
import java.util.Map;
import org.wallaroo.spark.message.JournalRow;

/** Receives the counts of a stage's worker calls. Accounts of tasks and of engines each keep some of these counts. */
public interface CallCounts {
    /** Notes that a stage is about to call its worker. A task reports the time of its first call. */
    default void opened(String stage) {}

    /** Notes the numbers of messages that a stage has processed, by port. */
    default void ran(String stage, Map<Integer, Long> messages) {}

    /** Notes the numbers of messages that a stage has emitted, by port. */
    default void gave(String stage, Map<Integer, Long> messages) {}

    /** Counts the messages in the frames that a stage has emitted. */
    default void gave(String stage, List<JournalRow.Item> items) {}

    /** Returns the counters of steps, states and visits. */
    Counters counters();
}
