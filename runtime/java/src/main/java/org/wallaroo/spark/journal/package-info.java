/** The journal, from files or from a remote gateway. */
package org.wallaroo.spark.journal;
