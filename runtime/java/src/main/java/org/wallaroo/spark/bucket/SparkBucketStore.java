package org.wallaroo.spark.bucket;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import org.apache.spark.sql.streaming.TTLConfig;

/** Stores versions and logs in Spark's state store. If a task fails, Spark undoes the changes of the batch. */
public final class SparkBucketStore implements BucketStore {
    /** Name of the only state in Spark's store. It has all versions and logs. */
    public static final String NAME = "log";

    private static final int BUCKET_BITS = 32;
    private static final int VERSION = -1; // in a key, in place of an entry's number
    private static final long FACTS = key(-1, 0); // no bucket has the number -1
    private static final long TIMES = key(-1, 1);
    private final MapState<Long, byte[]> entries;

    /** Opens the store. Versions and logs share one state of Spark, since each state costs every task some time. */
    public SparkBucketStore(StatefulProcessorHandle handle) {
        entries = handle.getMapState(NAME, Encoders.LONG(), Encoders.BINARY(), TTLConfig.NONE());
    }

    private static long key(int bucket, int entry) {
        return (long) bucket << BUCKET_BITS | entry & 0xffffffffL;
    }

    /** Returns the bucket's number in a key of Spark's store. Each key has the numbers of a bucket and a log entry. */
    public static int bucketOf(long key) {
        return (int) (key >> BUCKET_BITS);
    }

    /** Returns the log entry's number in a key of Spark's store. */
    public static int entryOf(long key) {
        return (int) key;
    }

    /** Says whether a key of Spark's store leads to a bucket's version, and not to a log entry. */
    public static boolean isVersion(long key) {
        return (int) key == VERSION;
    }

    /** Returns facts about each state (class, key and others), for {@code ProgramCheck}; null if there are none. */
    public byte[] facts() {
        return entries.getValue(FACTS);
    }

    /** Stores facts about each state, with which a changed program later compares its own facts. */
    public void storeFacts(byte[] facts) {
        entries.updateValue(FACTS, facts);
    }

    /** Returns the time of the latest row of each source, as JSON; null if nobody has stored times. */
    public byte[] times() {
        return entries.getValue(TIMES);
    }

    /**
     * Stores the time of the latest row of each source. Later micro-batches compute their watermark from these times.
     */
    public void storeTimes(byte[] times) {
        entries.updateValue(TIMES, times);
    }

    @Override
    public BucketVersion version(int bucket) {
        byte[] found = entries.getValue(key(bucket, VERSION));
        return found == null ? BucketVersion.EMPTY : BucketVersion.fromBytes(found);
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
        entries.updateValue(key(bucket, VERSION), after.toBytes());
    }
}
