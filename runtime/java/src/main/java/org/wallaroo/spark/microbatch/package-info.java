/** The tasks of micro-batches: the journal in ranges, levels of stages, staged output. */
package org.wallaroo.spark.microbatch;
