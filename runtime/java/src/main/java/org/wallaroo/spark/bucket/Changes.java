package org.wallaroo.spark.bucket;

import java.util.List;

/**
 * The changes that one worker call has made to the states of a bucket, for {@link BucketStore#store}.
 *
 * @param bucket of the call
 * @param before version before the call
 * @param after version after the call
 * @param entries new entries of the log
 */
public record Changes(int bucket, BucketVersion before, BucketVersion after, List<byte[]> entries) {}
