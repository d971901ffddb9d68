package org.wallaroo.spark.bucket;

import java.util.List;

/**
 * The engine's question to Spark's store.
 *
 * @param bucket of the state
 * @param log version whose log the engine asks for; null if it asks for the bucket's version
 */
public record StoreRequest(int bucket, BucketVersion log) {
    /** Returns the entries of the log, or the bytes of the version as the only element. */
    public List<byte[]> answer(BucketStore store) {
        return log == null ? List.of(store.version(bucket).toBytes()) : store.log(bucket, log);
    }
}
