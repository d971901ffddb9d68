package org.wallaroo.spark.bucket;

import java.util.List;

/** Versions and logs of the buckets of a task. */
public interface BucketStore {
    /** Returns the version of a bucket that was stored last. */
    BucketVersion version(int bucket);

    /** Returns the entries of a log, oldest first. */
    List<byte[]> log(int bucket, BucketVersion version);

    /**
     * Stores the changes of a call.
     *
     * @param bucket of the call
     * @param before version before the call
     * @param after version after the call
     * @param changes new entries of the log
     */
    void store(int bucket, BucketVersion before, BucketVersion after, List<byte[]> changes);
}
