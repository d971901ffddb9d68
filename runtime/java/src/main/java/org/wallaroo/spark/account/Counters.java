package org.wallaroo.spark.account;

import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.wallaroo.spark.bucket.BucketVersion;
import wallaroo.worker.v1.WorkerOuterClass.StepCount;
import wallaroo.worker.v1.WorkerOuterClass.Visited;

/**
 * The counts that the monitor shows of sources, steps and sinks, the sizes of states, and the results of visits (a
 * visit is one call of user code for each key of a state). In real-time mode they count from the start of the query on,
 * in micro-batches for one task. A repeated message counts once.
 */
public final class Counters {
    private static final int MOST_VISITS = 1000; // as many as the journal's directory keeps

    private final Map<String, Map<String, Long>> steps = new TreeMap<>(); // by path and name; inner maps do not change
    private final Map<String, Map<Integer, List<Long>>> stores = new TreeMap<>(); // keys and bytes, by stage and bucket
    private final NavigableMap<Long, Map<String, Long>> visits = new TreeMap<>(); // by id and name, like steps

    /** Takes over the numbers of another object. This object must be new. */
    public void restore(Counters other) {
        steps.putAll(other.steps);
        visits.putAll(other.visits);
        other.stores.forEach((stage, sizes) -> stores.put(stage, new TreeMap<>(sizes)));
    }

    /** Returns a copy that does not change. */
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

    /** Notes the size of a bucket's state after a call. */
    public void store(String stage, int bucket, long keys, BucketVersion version) {
        stores.computeIfAbsent(stage, id -> new TreeMap<>())
                .put(bucket, List.of(keys, version.snapshotBytes() + version.changeBytes()));
    }

    /** Returns the numbers of messages that passed through sources, steps and sinks, by path and name. */
    public Map<String, Map<String, Long>> steps() {
        return steps;
    }

    /** Returns for each stage and bucket a list of two numbers: keys, and bytes of the log. */
    public Map<String, Map<Integer, List<Long>>> stores() {
        return stores;
    }

    /** Returns the numbers of visited keys and of failed ones of the latest visits, by id and name. */
    public NavigableMap<Long, Map<String, Long>> visits() {
        return visits;
    }
}
