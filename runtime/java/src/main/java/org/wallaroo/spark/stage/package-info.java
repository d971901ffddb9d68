/** The stages of a plan, level by level: calls of workers over rows of the journal. */
package org.wallaroo.spark.stage;
