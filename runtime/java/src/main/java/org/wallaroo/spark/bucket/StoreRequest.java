package org.wallaroo.spark.bucket;

import java.util.List;

/**
 * A request of the engine for the version or the log of a bucket. Only tasks have Spark's store, so the task of the
 * running batch answers.
 *
 * @param bucket of the state
 * @param log version whose log the engine asks for; null if it asks for the bucket's version
 */
public record StoreRequest(int bucket, BucketVersion log) {
    /** Returns the answer of a store: the entries of the log, or one element with the bytes of the version. */
    public List<byte[]> answer(BucketStore store) {
        return log == null ? List.of(store.version(bucket).toBytes()) : store.log(bucket, log);
    }
}
