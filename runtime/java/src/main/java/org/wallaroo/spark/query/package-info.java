/** The settings of a query, which task runs, and the errors of operators. */
package org.wallaroo.spark.query;
