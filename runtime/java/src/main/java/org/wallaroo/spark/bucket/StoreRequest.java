package org.wallaroo.spark.bucket;

import java.util.List;

/**
 * The engine's question to Spark's store.
 *
 * @param bucket of the state
 * @param log version whose log is wanted; null if the bucket's version is wanted
 */
public record StoreRequest(int bucket, BucketVersion log) {
    /** Returns the entries of the log, or the bytes of the version as the only element. */
    public List<byte[]> answer(BucketStore store) {
        return log == null ? List.of(store.version(bucket).toBytes()) : store.log(bucket, log);
    }
}
