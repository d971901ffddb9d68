package org.wallaroo.spark.deliver;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.wallaroo.spark.bucket.BucketStore;
import org.wallaroo.spark.bucket.BucketVersion;
import org.wallaroo.spark.bucket.Changes;
import org.wallaroo.spark.bucket.StoreRequest;

/**
 * The engine's view of the states of buckets: Spark's store, and the changes that no task has stored there yet.
 *
 * <p>The object keeps only these changes. For everything else, it asks the task that has Spark's store.
 */
public final class EngineStore implements BucketStore {
    private final BarrierQueue queue;
    private final boolean isNew;
    private final Map<Integer, BucketVersion> versions = new HashMap<>();
    private final Map<Integer, Map<Integer, byte[]>> ahead = new HashMap<>(); // unstored, by bucket and number
    private List<Changes> unbound = new ArrayList<>(); // since the last barrier

    /**
     * Makes the view for one engine.
     *
     * @param queue of the engine
     * @param isNew whether Spark's store had nothing when the engine began
     */
    public EngineStore(BarrierQueue queue, boolean isNew) {
        this.queue = queue;
        this.isNew = isNew;
    }

    @Override
    public BucketVersion version(int bucket) {
        BucketVersion known = versions.get(bucket);
        if (known == null) {
            known = isNew
                    ? BucketVersion.EMPTY
                    : BucketVersion.fromBytes(queue.ask(new StoreRequest(bucket, null)).get(0));
            versions.put(bucket, known);
        }
        return known;
    }

    @Override
    public List<byte[]> log(int bucket, BucketVersion version) {
        Map<Integer, byte[]> newer;
        synchronized (this) {
            newer = new HashMap<>(ahead.getOrDefault(bucket, Map.of()));
        }
        int stored = version.first();
        while (stored < version.last() && !newer.containsKey(stored)) {
            stored++;
        }
        List<byte[]> log = new ArrayList<>();
        if (stored > version.first()) {
            log.addAll(queue.ask(new StoreRequest(bucket, version.until(stored))));
        }
        for (int entry = stored; entry < version.last(); entry++) {
            log.add(newer.get(entry));
        }
        return log;
    }

    @Override
    public synchronized void store(int bucket, BucketVersion before, BucketVersion after, List<byte[]> changes) {
        unbound.add(new Changes(bucket, before, after, changes));
        versions.put(bucket, after);
        Map<Integer, byte[]> entries = ahead.computeIfAbsent(bucket, number -> new HashMap<>());
        int entry = before.last();
        for (byte[] change : changes) {
            entries.put(entry, change);
            entry++;
        }
    }

    /** Returns the changes since the last barrier, in their order, for the barrier that is being made. */
    public synchronized List<Changes> bind() {
        List<Changes> bound = unbound;
        unbound = new ArrayList<>();
        return bound;
    }

    /** Forgets changes that Spark's store has by now. */
    public synchronized void stored(List<Changes> changes) {
        for (Changes each : changes) {
            Map<Integer, byte[]> entries = ahead.get(each.bucket());
            for (int entry = each.before().last(); entry < each.after().last(); entry++) {
                entries.remove(entry);
            }
        }
    }
}
