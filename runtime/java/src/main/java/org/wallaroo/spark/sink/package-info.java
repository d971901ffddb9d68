/** Spark's sinks: they bring the rows of a batch to the driver, which publishes the files that the rows name. */
package org.wallaroo.spark.sink;
