package org.wallaroo.spark.bucket;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import org.apache.spark.sql.streaming.TTLConfig;

/** Versions and logs in Spark's state store: it goes back to the begin of a batch when the task fails. */
public final class SparkBucketStore implements BucketStore {
    private static final int BUCKET_BITS = 32;

    private final MapState<Integer, byte[]> versions;
    private final MapState<Long, byte[]> entries;

    public SparkBucketStore(StatefulProcessorHandle handle) {
        versions = handle.getMapState("version", Encoders.INT(), Encoders.BINARY(), TTLConfig.NONE());
        entries = handle.getMapState("log", Encoders.LONG(), Encoders.BINARY(), TTLConfig.NONE());
    }

    private static long key(int bucket, int entry) {
        return (long) bucket << BUCKET_BITS | entry & 0xffffffffL;
    }

    @Override
    public BucketVersion version(int bucket) {
        return versions.containsKey(bucket) ? BucketVersion.fromBytes(versions.getValue(bucket)) : BucketVersion.EMPTY;
    }

    @Override
    public List<byte[]> log(int bucket, BucketVersion version) {
        List<byte[]> log = new ArrayList<>();
        for (int entry = version.first(); entry < version.last(); entry++) {
            log.add(entries.getValue(key(bucket, entry)));
        }
        return log;
    }

    @Override
    public void store(int bucket, BucketVersion before, BucketVersion after, List<byte[]> changes) {
        for (int entry = before.first(); entry < Math.min(after.first(), before.last()); entry++) {
            entries.removeKey(key(bucket, entry));
        }
        int entry = before.last();
        for (byte[] change : changes) {
            entries.updateValue(key(bucket, entry), change);
            entry++;
        }
        versions.updateValue(bucket, after.toBytes());
    }
}
