/** The channel to a worker: deadlines, recovery, suspects, and checks of its replies. */
package org.wallaroo.spark.worker;
