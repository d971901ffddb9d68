/** The stages of a plan, level by level: frames go to workers, and their outputs to the next stages. */
package org.wallaroo.spark.stage;
