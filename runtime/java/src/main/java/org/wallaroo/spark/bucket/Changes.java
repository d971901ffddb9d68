package org.wallaroo.spark.bucket;

import java.util.List;

/**
 * The changes of states by one call of a bucket.
 *
 * @param bucket of the call
 * @param before version before the call
 * @param after version after the call
 * @param entries new entries of the log
 */
public record Changes(int bucket, BucketVersion before, BucketVersion after, List<byte[]> entries) {}
