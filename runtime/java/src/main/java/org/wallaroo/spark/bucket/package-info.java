/** Versions and logs of the states of buckets, and Spark's store of them. */
package org.wallaroo.spark.bucket;
