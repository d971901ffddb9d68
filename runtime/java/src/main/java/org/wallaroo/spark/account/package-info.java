/** Counts: messages that must add up at each barrier, and the numbers of the monitor. */
package org.wallaroo.spark.account;
