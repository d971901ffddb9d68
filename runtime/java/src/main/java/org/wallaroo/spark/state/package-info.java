/** States in Spark's store outside of a query of an application: shown, and written into a new checkpoint. */
package org.wallaroo.spark.state;
