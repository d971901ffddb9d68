/** The end of a micro-batch: its rows go to the program that has started the query, which publishes the files they name. */
package org.wallaroo.spark.sink;
