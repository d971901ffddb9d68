/** Frames of messages, and the rows in which they pass from the journal to the egress. */
package org.wallaroo.spark.message;
