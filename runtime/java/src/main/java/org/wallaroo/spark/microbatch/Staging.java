package org.wallaroo.spark.microbatch;

import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.wallaroo.spark.query.Attempt;
import org.wallaroo.spark.query.Settings;

/** Stages the output of one task attempt: only if Spark uses this attempt, the driver publishes the output later. */
interface Staging {
    /** Returns the place for an attempt's output: files in a directory of this machine, or a remote egress. */
    static Staging of(Settings settings, Attempt attempt) {
        return settings.staging().isEmpty()
                ? new StagedStream(settings.egress(), settings.egressEpoch(), attempt)
                : new StagedFiles(Path.of(settings.staging()), attempt);
    }

    /** Returns the name of the file of a port. */
    static String name(Attempt attempt, int port) {
        return String.format(Locale.ROOT, "%s-%d-%d-%d-%d.frames",
                attempt.query(), attempt.batch(), attempt.partition(), attempt.attempt(), port);
    }

    /** Appends a whole frame to the file of a port. */
    void write(int port, byte[] frame);

    /** Waits until all output is on disk; returns a descriptor of each file as JSON. */
    List<String> finish();

    /** Drops the output of an attempt that has failed. */
    void abort();
}
