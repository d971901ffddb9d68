/** States in Spark's store: read for users and rescales, and written as the first states of a checkpoint or query. */
package org.wallaroo.spark.state;
