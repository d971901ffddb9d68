package org.wallaroo.spark.bucket;

import java.util.List;

/**
 * The changes of a call in a bucket.
 *
 * @param bucket of the call
 * @param before version before it
 * @param after version after it
 * @param entries of the log, new ones
 */
public record Changes(int bucket, BucketVersion before, BucketVersion after, List<byte[]> entries) {}
