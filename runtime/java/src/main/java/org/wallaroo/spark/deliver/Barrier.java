package org.wallaroo.spark.deliver;

import java.util.List;
import org.wallaroo.spark.bucket.Changes;
import org.wallaroo.spark.message.JournalRow;

/**
 * A moment at which no call is open: a batch may end with one.
 *
 * @param place in the journal: all before it is processed, nothing after it has begun
 * @param deliveries how many the egress has got before it
 * @param changes of states since the barrier before
 */
public record Barrier(JournalRow.Place place, long deliveries, List<Changes> changes) {}
