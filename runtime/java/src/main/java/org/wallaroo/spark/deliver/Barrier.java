package org.wallaroo.spark.deliver;

import java.util.List;
import org.wallaroo.spark.bucket.Changes;
import org.wallaroo.spark.message.JournalRow;

/**
 * A moment in the engine's work at which no call is open, so that a batch may end. {@code Engine} decides when.
 *
 * @param place in the journal: all messages before it are processed, and no message after it has begun
 * @param deliveries number of deliveries that the egress has received before the barrier
 * @param changes of states since the previous barrier
 */
public record Barrier(JournalRow.Place place, long deliveries, List<Changes> changes) {}
