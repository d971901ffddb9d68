/** The engine of a query in real-time mode, and the calls of a task to it. */
package org.wallaroo.spark.engine;
