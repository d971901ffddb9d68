/** Spark's side of a query in real-time mode: source, state operator, sink, and the driver's calls. */
package org.wallaroo.spark.realtime;
