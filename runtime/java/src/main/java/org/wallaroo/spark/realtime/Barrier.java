package org.wallaroo.spark.realtime;

import java.util.List;

/**
 * A moment at which no call is open: what a batch may end with.
 *
 * @param place in the journal: all before it is processed, nothing after it has begun
 * @param deliveries how many the egress has got before it
 * @param changes of states since the barrier before
 */
record Barrier(Parcel.Place place, long deliveries, List<Changes> changes) {}
