/** The settings of a query, the attempt of its running task, and the errors of operators. */
package org.wallaroo.spark.query;
