/** The settings of a query, the task that runs here, and the errors of operators. */
package org.wallaroo.spark.query;
