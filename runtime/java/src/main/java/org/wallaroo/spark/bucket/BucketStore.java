package org.wallaroo.spark.bucket;

import java.util.List;

/** Stores the states of buckets: for each bucket a version and the log of its states. */
public interface BucketStore {
    /** Returns the last stored version of a bucket. */
    BucketVersion version(int bucket);

    /** Returns the log entries that belong to a version of a bucket, oldest first. */
    List<byte[]> log(int bucket, BucketVersion version);

    /**
     * Stores the changes that a call has made to the states of a bucket.
     *
     * @param bucket of the call
     * @param before version before the call
     * @param after version after the call
     * @param changes new entries of the log
     */
    void store(int bucket, BucketVersion before, BucketVersion after, List<byte[]> changes);
}
