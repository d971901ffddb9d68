/** The engine of a query, and the calls of a task to it. */
package org.wallaroo.spark.engine;
