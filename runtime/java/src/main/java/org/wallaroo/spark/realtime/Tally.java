package org.wallaroo.spark.realtime;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;

/**
 * What passed sources, steps and sinks, and what states there are: since the query began, as far as its messages have
 * been run once, however often they are repeated.
 */
final class Tally {
    private final Map<String, Counts> steps = new TreeMap<>(); // by path
    private final Map<String, Map<Integer, Size>> stores = new TreeMap<>(); // by stage and bucket

    /** What passed a source, step or sink. */
    record Counts(long in, long out, long dead) {
        private static final Counts NONE = new Counts(0, 0, 0);

        private Counts plus(StepCount count) {
            return new Counts(in + count.getMessagesIn(), out + count.getMessagesOut(), dead + count.getDeadLetters());
        }
    }

    /** How large the state of a bucket is: its keys, and the bytes of its log. */
    record Size(long keys, long bytes) {}

    /** Begins where another one is. */
    void restore(Tally other) {
        steps.putAll(other.steps);
        other.stores.forEach((stage, sizes) -> stores.put(stage, new TreeMap<>(sizes)));
    }

    /** Returns one that does not change. */
    Tally copy() {
        Tally copy = new Tally();
        copy.restore(this);
        return copy;
    }

    /** Adds what a call has counted. */
    void count(List<StepCount> counts) {
        counts.forEach(count -> steps.put(
                count.getPath(), steps.getOrDefault(count.getPath(), Counts.NONE).plus(count)));
    }

    /** Notes the state of a bucket after a call. */
    void store(String stage, int bucket, long keys, BucketVersion version) {
        stores.computeIfAbsent(stage, id -> new TreeMap<>())
                .put(bucket, new Size(keys, version.snapshotBytes() + version.changeBytes()));
    }

    Map<String, Counts> steps() {
        return steps;
    }

    Map<String, Map<Integer, Size>> stores() {
        return stores;
    }
}
