package org.wallaroo.spark.account;

import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.wallaroo.spark.bucket.BucketVersion;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;
import wallaroo.worker.v1.WorkerOuterClass.Visited;

/**
 * The numbers for the monitor: counts of sources, steps and sinks, sizes of states, and results of visits (a visit
 * calls user code once for each key of a state). They cover the whole query in real-time mode, and one task in
 * micro-batches. A repeated message counts once.
 */
public final class Counters {
    private static final int MOST_VISITS = 1000; // as many as the journal's directory keeps

    private final Map<String, Map<String, Long>> steps = new TreeMap<>(); // by path and name; inner maps do not change
    private final Map<String, Map<Integer, List<Long>>> stores = new TreeMap<>(); // keys and bytes, by stage and bucket
    private final NavigableMap<Long, Map<String, Long>> visits = new TreeMap<>(); // by id and name, like steps

    /** Copies the numbers of other counters into this object, which must be new. */
    public void restore(Counters other) {
        steps.putAll(other.steps);
        visits.putAll(other.visits);
        other.stores.forEach((stage, sizes) -> stores.put(stage, new TreeMap<>(sizes)));
    }

    /** Returns a copy, which later counts of this object do not change. */
    public Counters copy() {
        Counters copy = new Counters();
        copy.restore(this);
        return copy;
    }

    /** Adds the counts of a call. */
    public void count(List<StepCount> counts) {
        counts.forEach(count -> steps.merge(count.getPath(), named(count), Counters::sum));
    }

    private static Map<String, Long> named(StepCount count) {
        Map<String, Long> named = new TreeMap<>(count.getMoreMap());
        named.put("messages_in", count.getMessagesIn());
        named.put("messages_out", count.getMessagesOut());
        named.put("dead_letters", count.getDeadLetters());
        return named;
    }

    private static Map<String, Long> sum(Map<String, Long> some, Map<String, Long> others) {
        Map<String, Long> sum = new TreeMap<>(some);
        others.forEach((name, number) -> sum.merge(name, number, Long::sum));
        return sum;
    }

    /** Adds the results of visits in a call. A key that two steps visit counts twice. */
    public void visit(List<Visited> visited) {
        visited.forEach(each -> visits.merge(
                each.getId(), Map.of("keys", each.getKeys(), "failed", each.getFailed()), Counters::sum));
        while (visits.size() > MOST_VISITS) {
            visits.pollFirstEntry();
        }
    }

    /** Notes the number of keys in a bucket and the size of its log, after a call. */
    public void store(String stage, int bucket, long keys, BucketVersion version) {
        stores.computeIfAbsent(stage, id -> new TreeMap<>())
                .put(bucket, List.of(keys, version.snapshotBytes() + version.changeBytes()));
    }

    /** Returns the counts of sources, steps and sinks, by path and by name of the count, e.g. {@code messages_in}. */
    public Map<String, Map<String, Long>> steps() {
        return steps;
    }

    /** Returns for each stage and bucket a list of two numbers: keys, and bytes of the log. */
    public Map<String, Map<Integer, List<Long>>> stores() {
        return stores;
    }

    /** Returns the results of the latest visits by id: numbers of visited {@code keys}, and of {@code failed} ones. */
    public NavigableMap<Long, Map<String, Long>> visits() {
        return visits;
    }
}
