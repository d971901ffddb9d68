/** The engine's results: output to the egress, barriers to Spark's task. */
package org.wallaroo.spark.deliver;
