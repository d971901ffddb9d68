/**
 * The operators of Spark's real-time mode: the journal as a source, the levels of a plan, and the egress as a sink.
 *
 * <p>A query is one task that runs for the length of a batch: {@code JournalSource} gives frames as soon as the journal
 * has them, {@code SourceLevel} and {@code StateLevels} call the workers, {@code EgressSink} hands outputs to the
 * egress at once. A batch ends when every call is closed, every change is in Spark's state store and every output is
 * acknowledged; {@link org.wallaroo.spark.realtime.BatchEnd} checks that no offset passes that this does not cover.
 */
package org.wallaroo.spark.realtime;
